/// Attacks on a live session: ranks and fronts that are killed, frozen, interrupted, flooded and
/// restarted at random, and what must hold after each.
@NullMarked
package braid.launcher.soak;

import org.jspecify.annotations.NullMarked;
