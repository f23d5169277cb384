/// Parameters of a notebook: what the user gave, what its `parameters` cell declares, and the cell
/// that is injected for it.
@NullMarked
package braid.launcher.notebook.parameters;

import org.jspecify.annotations.NullMarked;
