/// What streams are given to do: multiplications, sums, and what they read and write. It says what
/// is to be done and nothing of how.
@NullMarked
package braid.internal.work;

import org.jspecify.annotations.NullMarked;
