/// Measures whether a session stays fast and small over hundreds of cells.
@NullMarked
package braid.launcher.bench.life;

import org.jspecify.annotations.NullMarked;
