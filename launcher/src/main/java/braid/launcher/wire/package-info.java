/// What the front and a rank say to each other.
@NullMarked
package braid.launcher.wire;

import org.jspecify.annotations.NullMarked;
