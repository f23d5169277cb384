/// Tests of how measurements are kept and shown.
@NullMarked
package braid.internal.report;

import org.jspecify.annotations.NullMarked;
