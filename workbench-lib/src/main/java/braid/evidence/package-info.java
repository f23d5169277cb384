/// What ranks measured, kept and judged: sets of profiles, studies, runs and their comparison.
@NullMarked
package braid.evidence;

import org.jspecify.annotations.NullMarked;
