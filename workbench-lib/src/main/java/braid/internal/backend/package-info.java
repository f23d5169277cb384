/// What computes and copies: streams, events, signals, memory, multiplication. The pipelines are
/// written against [braid.internal.backend.Backend]; which one runs them they do not know.
@NullMarked
package braid.internal.backend;

import org.jspecify.annotations.NullMarked;
