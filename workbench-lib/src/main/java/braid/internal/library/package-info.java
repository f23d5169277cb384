/// Collectives that a library makes: what is asked of it, and what it puts on a stream.
@NullMarked
package braid.internal.library;

import org.jspecify.annotations.NullMarked;
