/// The front's side of the rank processes: starting, watching, talking to them.
@NullMarked
package braid.launcher.ranks;

import org.jspecify.annotations.NullMarked;
