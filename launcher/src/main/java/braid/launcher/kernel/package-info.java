/// The Jupyter kernel of a `Session`.
@NullMarked
package braid.launcher.kernel;

import org.jspecify.annotations.NullMarked;
