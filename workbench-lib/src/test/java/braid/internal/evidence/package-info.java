@NullMarked
package braid.internal.evidence;

import org.jspecify.annotations.NullMarked;
