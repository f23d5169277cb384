/// What measurements say, and how surely: intervals, rankings, where time went, the order of
/// measuring.
@NullMarked
package braid.internal.report.statistics;

import org.jspecify.annotations.NullMarked;
