/// Starts ranks, runs cells on them, runs notebooks, and implements the `braid` command.
@NullMarked
package braid.launcher;

import org.jspecify.annotations.NullMarked;
