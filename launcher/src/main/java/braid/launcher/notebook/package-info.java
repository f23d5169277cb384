/// Notebook files and their parameters; `run` has the headless runner of a `Session`.
@NullMarked
package braid.launcher.notebook;

import org.jspecify.annotations.NullMarked;
