/// Runs inside the JVM of a rank.
@NullMarked
package braid.launcher.rank;

import org.jspecify.annotations.NullMarked;
