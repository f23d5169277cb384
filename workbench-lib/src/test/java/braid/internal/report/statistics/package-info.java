/// Tests of the statistics of measurements.
@NullMarked
package braid.internal.report.statistics;

import org.jspecify.annotations.NullMarked;
