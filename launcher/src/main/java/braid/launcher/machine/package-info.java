/// What this machine has for ranks to run on, and what follows from it: how many ranks, on which
/// backend.
@NullMarked
package braid.launcher.machine;

import org.jspecify.annotations.NullMarked;
