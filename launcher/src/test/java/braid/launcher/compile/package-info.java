@NullMarked
package braid.launcher.compile;

import org.jspecify.annotations.NullMarked;
