/// Multiplications by cublasLt on row-major matrices.
@NullMarked
package braid.natives.blaslt;

import org.jspecify.annotations.NullMarked;
