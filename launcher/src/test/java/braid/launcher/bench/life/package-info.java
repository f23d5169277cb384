@NullMarked
package braid.launcher.bench.life;

import org.jspecify.annotations.NullMarked;
