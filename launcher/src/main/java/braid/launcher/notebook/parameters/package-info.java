/// Parameters of a notebook: values given by the user, declarations of its `parameters` cell, and
/// the cell that is injected.
@NullMarked
package braid.launcher.notebook.parameters;

import org.jspecify.annotations.NullMarked;
