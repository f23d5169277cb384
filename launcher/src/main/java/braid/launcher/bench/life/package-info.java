/// Whether a session that has run hundreds of cells is as quick and as small as a young one.
@NullMarked
package braid.launcher.bench.life;

import org.jspecify.annotations.NullMarked;
