/// Charts: one style, one way to draw, one class per kind of chart.
@NullMarked
package braid.internal.report.chart;

import org.jspecify.annotations.NullMarked;
