/// Jupyter's messages, their signatures, and the sockets they travel on.
@NullMarked
package braid.launcher.kernel.channels;

import org.jspecify.annotations.NullMarked;
