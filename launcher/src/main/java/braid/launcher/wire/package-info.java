/// Messages between the front and a rank.
@NullMarked
package braid.launcher.wire;

import org.jspecify.annotations.NullMarked;
