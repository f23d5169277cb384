/// Text forms of values, light enough for ranks: of cell results as aligned text and as HTML, of
/// times, and of configurations.
@NullMarked
package braid.internal.report.value;

import org.jspecify.annotations.NullMarked;
