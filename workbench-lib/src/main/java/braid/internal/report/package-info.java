/// Presentation of measurements: tables, texts and notebook displays.
@NullMarked
package braid.internal.report;

import org.jspecify.annotations.NullMarked;
