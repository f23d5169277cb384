/// The backend of GPUs: streams and what is compiled for them, signals in words of the GPU, spans
/// from CUPTI, readings of the hardware.
@NullMarked
package braid.internal.cuda;

import org.jspecify.annotations.NullMarked;
