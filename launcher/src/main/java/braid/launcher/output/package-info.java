/// Merges the prints, displays and values of N ranks into one output.
@NullMarked
package braid.launcher.output;

import org.jspecify.annotations.NullMarked;
