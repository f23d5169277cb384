/// A rank's GPU: multiplication by cublasLt and the choice of its algorithms, second forms of
/// operands, access from the host, communicators.
@NullMarked
package braid.internal.cuda.device;

import org.jspecify.annotations.NullMarked;
