/// Collectives by themselves: what a group's members set up once to make them, how each is laid out
/// on streams, and messages between two ranks.
@NullMarked
package braid.internal.collective;

import org.jspecify.annotations.NullMarked;
