/// Runs a notebook on a session, cell by cell, and writes down what came of it.
@NullMarked
package braid.launcher.notebook.run;

import org.jspecify.annotations.NullMarked;
