/// What runs inside a rank's JVM.
@NullMarked
package braid.launcher.rank;

import org.jspecify.annotations.NullMarked;
