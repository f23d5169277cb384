/// Compares a run with the outputs stored in its notebook by structure, never by numbers.
@NullMarked
package braid.launcher.notebook.check;

import org.jspecify.annotations.NullMarked;
