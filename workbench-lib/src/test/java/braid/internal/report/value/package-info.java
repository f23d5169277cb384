/// Tests of text forms.
@NullMarked
package braid.internal.report.value;

import org.jspecify.annotations.NullMarked;
