/// Outputs and input requests of a cell as Jupyter messages.
@NullMarked
package braid.launcher.kernel.output;

import org.jspecify.annotations.NullMarked;
