/// The contract of backends: streams, events, signals, memory. Pipelines and collectives are
/// written against [braid.internal.backend.Backend]; which one runs them they do not know.
@NullMarked
package braid.internal.backend;

import org.jspecify.annotations.NullMarked;
