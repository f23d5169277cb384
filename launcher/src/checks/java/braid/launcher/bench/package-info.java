/// `braid bench`: measures the cost of Braid itself beside common alternatives.
@NullMarked
package braid.launcher.bench;

import org.jspecify.annotations.NullMarked;
