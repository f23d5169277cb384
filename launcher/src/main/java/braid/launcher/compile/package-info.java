/// The session's only compiler, and what it answers an editor.
@NullMarked
package braid.launcher.compile;

import org.jspecify.annotations.NullMarked;
