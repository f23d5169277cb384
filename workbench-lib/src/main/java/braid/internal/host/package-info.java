/// The host backend's machinery: shared files, signal words, the copy engine and its pace, queues
/// of work, multiplication.
@NullMarked
package braid.internal.host;

import org.jspecify.annotations.NullMarked;
