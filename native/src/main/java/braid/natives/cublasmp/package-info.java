/// cuBLASMp: a GEMM and its collective as one call.
@NullMarked
package braid.natives.cublasmp;

import org.jspecify.annotations.NullMarked;
