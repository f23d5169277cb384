/// Bindings to what is not Java: libc through FFM, OpenBLAS and CUDA through JavaCPP. No policy
/// lives here.
@NullMarked
package braid.natives;

import org.jspecify.annotations.NullMarked;
