/// Completion, inspection and completeness of code being written, without the ranks.
@NullMarked
package braid.launcher.editing;

import org.jspecify.annotations.NullMarked;
