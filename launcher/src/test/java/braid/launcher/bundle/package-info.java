@NullMarked
package braid.launcher.bundle;

import org.jspecify.annotations.NullMarked;
