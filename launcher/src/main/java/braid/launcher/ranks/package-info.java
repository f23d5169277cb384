/// Rank processes as the front sees them: starts and watches them and exchanges messages.
@NullMarked
package braid.launcher.ranks;

import org.jspecify.annotations.NullMarked;
