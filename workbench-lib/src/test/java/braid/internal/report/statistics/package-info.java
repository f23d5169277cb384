/// Tests of what measurements say.
@NullMarked
package braid.internal.report.statistics;

import org.jspecify.annotations.NullMarked;
