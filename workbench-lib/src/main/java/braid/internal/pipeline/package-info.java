/// Execution of problems: plans with their memory and signals, iterations in flight, and the
/// unfused reference that each result must reach.
@NullMarked
package braid.internal.pipeline;

import org.jspecify.annotations.NullMarked;
