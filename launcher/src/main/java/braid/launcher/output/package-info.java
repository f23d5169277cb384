/// One output from what N ranks print, show and return.
@NullMarked
package braid.launcher.output;

import org.jspecify.annotations.NullMarked;
