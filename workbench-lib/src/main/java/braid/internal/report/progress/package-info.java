/// How far long work has come, shown while it goes on.
@NullMarked
package braid.internal.report.progress;

import org.jspecify.annotations.NullMarked;
