/// What the driver says of GPUs without a context on them: which there are, how they reach each
/// other, how they fare.
@NullMarked
package braid.natives.nvml;

import org.jspecify.annotations.NullMarked;
