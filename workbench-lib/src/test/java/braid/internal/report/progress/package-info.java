@NullMarked
package braid.internal.report.progress;

import org.jspecify.annotations.NullMarked;
