@NullMarked
package braid.launcher.machine;

import org.jspecify.annotations.NullMarked;
