/// What measurements say, and how surely: quantiles, intervals, rankings, the order of measuring.
@NullMarked
package braid.internal.report.statistics;

import org.jspecify.annotations.NullMarked;
