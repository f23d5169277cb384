/// Collectives run by a library: requests, and the calls that enqueue them on a stream.
@NullMarked
package braid.internal.library;

import org.jspecify.annotations.NullMarked;
