/// Multiplications by cublasLt, row by row as the rest of Braid stores its matrices.
@NullMarked
package braid.natives.blaslt;

import org.jspecify.annotations.NullMarked;
