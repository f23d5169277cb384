/// Measurements of all ranks, saved and judged: sets of profiles, studies, runs, comparisons.
@NullMarked
package braid.evidence;

import org.jspecify.annotations.NullMarked;
