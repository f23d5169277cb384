/// What the members of a group hold together: pooled symmetric memory, the board on which they see
/// each other's calls, and the count of what that took.
@NullMarked
package braid.internal.memory;

import org.jspecify.annotations.NullMarked;
