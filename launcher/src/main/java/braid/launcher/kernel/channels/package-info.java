/// Jupyter's messages, their signatures and their sockets.
@NullMarked
package braid.launcher.kernel.channels;

import org.jspecify.annotations.NullMarked;
