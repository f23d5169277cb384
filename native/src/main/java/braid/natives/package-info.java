/// Bindings to native code: libc through FFM, OpenBLAS and CUDA through JavaCPP. Contains no
/// policy.
@NullMarked
package braid.natives;

import org.jspecify.annotations.NullMarked;
