/// What ranks hand to their front of what was measured: evidence in the end, and news before.
@NullMarked
package braid.internal.evidence;

import org.jspecify.annotations.NullMarked;
