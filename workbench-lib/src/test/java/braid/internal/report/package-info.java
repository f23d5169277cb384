/// Tests of how measurements are saved and shown.
@NullMarked
package braid.internal.report;

import org.jspecify.annotations.NullMarked;
