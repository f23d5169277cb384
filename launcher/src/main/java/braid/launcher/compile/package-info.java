/// The only compiler of a session, and the mapping of its messages to lines of cells.
@NullMarked
package braid.launcher.compile;

import org.jspecify.annotations.NullMarked;
