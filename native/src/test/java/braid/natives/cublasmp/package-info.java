@NullMarked
package braid.natives.cublasmp;

import org.jspecify.annotations.NullMarked;
