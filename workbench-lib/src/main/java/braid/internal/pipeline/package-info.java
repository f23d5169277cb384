/// Problems at work: their memory and signals, the schedules that lay them out on streams, and the
/// unfused reference that each must come to.
@NullMarked
package braid.internal.pipeline;

import org.jspecify.annotations.NullMarked;
