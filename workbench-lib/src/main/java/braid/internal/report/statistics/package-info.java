/// Statistics of measurements: intervals, rankings, breakdowns of time, the order of measuring.
@NullMarked
package braid.internal.report.statistics;

import org.jspecify.annotations.NullMarked;
