/// Tests of measurements as JSON.
@NullMarked
package braid.internal.report.json;

import org.jspecify.annotations.NullMarked;
