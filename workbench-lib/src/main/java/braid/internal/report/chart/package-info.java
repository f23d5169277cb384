/// Charts: one theme, one way to draw, a class for each kind of chart.
@NullMarked
package braid.internal.report.chart;

import org.jspecify.annotations.NullMarked;
