/// What an editor asks about code that is being written; no rank is asked.
@NullMarked
package braid.launcher.editing;

import org.jspecify.annotations.NullMarked;
