/// Tests of charts.
@NullMarked
package braid.internal.report.chart;

import org.jspecify.annotations.NullMarked;
