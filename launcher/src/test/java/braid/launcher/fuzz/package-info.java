/// Inputs that are broken at random: each must be taken or refused in one clear line.
@NullMarked
package braid.launcher.fuzz;

import org.jspecify.annotations.NullMarked;
