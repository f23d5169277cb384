/// Queries of the driver about GPUs, without a context: inventory, paths between GPUs, clocks and
/// load.
@NullMarked
package braid.natives.nvml;

import org.jspecify.annotations.NullMarked;
