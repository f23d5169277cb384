/// Braid's own kernels: their sources, their compilation by NVRTC on the machine that runs them,
/// and a launch method for each. Callers decide which kernel to use.
@NullMarked
package braid.natives.kernels;

import org.jspecify.annotations.NullMarked;
