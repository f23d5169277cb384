/// The session's only compiler, and whose line of which cell it speaks of.
@NullMarked
package braid.launcher.compile;

import org.jspecify.annotations.NullMarked;
