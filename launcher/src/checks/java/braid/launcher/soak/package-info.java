/// Attacks on a live session: ranks and fronts are killed, frozen, interrupted, flooded and
/// restarted at random, and conditions are checked after each attack.
@NullMarked
package braid.launcher.soak;

import org.jspecify.annotations.NullMarked;
