/// The headless face of a `Session`: notebook files, parameters and the runner.
@NullMarked
package braid.launcher.notebook;

import org.jspecify.annotations.NullMarked;
