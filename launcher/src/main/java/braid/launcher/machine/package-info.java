/// Resources of this machine, and the number of ranks and the backend derived from them.
@NullMarked
package braid.launcher.machine;

import org.jspecify.annotations.NullMarked;
