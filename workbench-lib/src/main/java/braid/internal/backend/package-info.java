/// The contract of backends: streams, events, signals, memory. Pipelines and collectives use only
/// [braid.internal.backend.Backend] and do not depend on an implementation.
@NullMarked
package braid.internal.backend;

import org.jspecify.annotations.NullMarked;
