/// Values of cells as aligned text and as HTML, light enough for ranks.
@NullMarked
package braid.internal.report.value;

import org.jspecify.annotations.NullMarked;
