@NullMarked
package braid.launcher.soak;

import org.jspecify.annotations.NullMarked;
