/// Measurements as JSON: written from their parts, read back strictly.
@NullMarked
package braid.internal.report.json;

import org.jspecify.annotations.NullMarked;
