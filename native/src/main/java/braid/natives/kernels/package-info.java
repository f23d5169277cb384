/// Kernels of our own: their sources, their compilation by NVRTC on the machine that runs them, and
/// a method to launch each. Which kernel is right for what is decided elsewhere.
@NullMarked
package braid.natives.kernels;

import org.jspecify.annotations.NullMarked;
