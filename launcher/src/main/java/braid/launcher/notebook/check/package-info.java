/// Holds a run to the outputs that are stored in its notebook: by their structure, never by a
/// number.
@NullMarked
package braid.launcher.notebook.check;

import org.jspecify.annotations.NullMarked;
