/// `Session` runs one cell on all ranks and merges their outputs.
@NullMarked
package braid.launcher.session;

import org.jspecify.annotations.NullMarked;
