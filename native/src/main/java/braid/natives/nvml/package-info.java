/// What the driver says of GPUs, without touching them.
@NullMarked
package braid.natives.nvml;

import org.jspecify.annotations.NullMarked;
