/// State that the members of a group share: pooled symmetric memory, the board on which they see
/// each other's calls, and counters of its cost.
@NullMarked
package braid.internal.memory;

import org.jspecify.annotations.NullMarked;
