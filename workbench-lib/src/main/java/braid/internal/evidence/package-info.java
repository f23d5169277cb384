/// Content that ranks send to their front about measurements: progress, and evidence at the end.
@NullMarked
package braid.internal.evidence;

import org.jspecify.annotations.NullMarked;
