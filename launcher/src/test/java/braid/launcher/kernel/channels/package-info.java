@NullMarked
package braid.launcher.kernel.channels;

import org.jspecify.annotations.NullMarked;
