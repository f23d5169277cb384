/// Basics of a rank: its environment, waits, closing of resources, and the outbox for its results.
@NullMarked
package braid.internal.rank;

import org.jspecify.annotations.NullMarked;
