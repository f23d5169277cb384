/// The seam where compiling ends and running begins: one step of a cell on all its ranks.
@NullMarked
package braid.launcher.fanout;

import org.jspecify.annotations.NullMarked;
