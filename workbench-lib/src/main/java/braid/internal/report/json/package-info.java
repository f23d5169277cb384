/// Measurements as JSON, read back strictly, and as traces for viewers.
@NullMarked
package braid.internal.report.json;

import org.jspecify.annotations.NullMarked;
