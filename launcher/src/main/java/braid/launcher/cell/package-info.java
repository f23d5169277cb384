/// A cell, its outputs and its end, shared by the session, the kernel and the notebook runner.
@NullMarked
package braid.launcher.cell;

import org.jspecify.annotations.NullMarked;
