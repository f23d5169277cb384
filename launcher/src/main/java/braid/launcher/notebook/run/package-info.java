/// Runs a notebook on a session cell by cell and records the results.
@NullMarked
package braid.launcher.notebook.run;

import org.jspecify.annotations.NullMarked;
