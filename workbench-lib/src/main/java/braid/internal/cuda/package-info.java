/// The CUDA backend: streams, compiled work and graphs, signals in GPU memory, spans from CUPTI,
/// hardware readings.
@NullMarked
package braid.internal.cuda;

import org.jspecify.annotations.NullMarked;
