/// The headless face of a `Session`: notebook files, their parameters, and in `run` the runner.
@NullMarked
package braid.launcher.notebook;

import org.jspecify.annotations.NullMarked;
