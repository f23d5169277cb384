/// Progress of long work, shown while it runs.
@NullMarked
package braid.internal.report.progress;

import org.jspecify.annotations.NullMarked;
