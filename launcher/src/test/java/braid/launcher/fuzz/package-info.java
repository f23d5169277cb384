/// Randomly corrupted inputs: each must be accepted or refused in one clear line.
@NullMarked
package braid.launcher.fuzz;

import org.jspecify.annotations.NullMarked;
