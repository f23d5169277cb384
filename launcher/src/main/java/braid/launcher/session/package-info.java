/// The heart: `Session` runs one cell on all ranks and merges what comes back.
@NullMarked
package braid.launcher.session;

import org.jspecify.annotations.NullMarked;
