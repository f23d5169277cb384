/// A rank's GPU and what it multiplies by: cublasLt's algorithms and their trials, second forms of
/// operands, access from the host, communicators.
@NullMarked
package braid.internal.cuda.device;

import org.jspecify.annotations.NullMarked;
