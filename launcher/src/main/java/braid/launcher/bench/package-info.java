/// `braid bench`: what Braid itself costs, measured beside what people use today.
@NullMarked
package braid.launcher.bench;

import org.jspecify.annotations.NullMarked;
