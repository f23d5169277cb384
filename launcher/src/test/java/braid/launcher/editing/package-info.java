@NullMarked
package braid.launcher.editing;

import org.jspecify.annotations.NullMarked;
