/// What a cell says to its client and asks of it, as messages.
@NullMarked
package braid.launcher.kernel.output;

import org.jspecify.annotations.NullMarked;
