/// Values in words, light enough for ranks: those of cells as aligned text and as HTML, times,
/// configurations.
@NullMarked
package braid.internal.report.value;

import org.jspecify.annotations.NullMarked;
