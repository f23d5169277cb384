/// Standalone collectives: the state that a group's ranks set up once, the execution of each call
/// on streams, and messages between two ranks.
@NullMarked
package braid.internal.collective;

import org.jspecify.annotations.NullMarked;
