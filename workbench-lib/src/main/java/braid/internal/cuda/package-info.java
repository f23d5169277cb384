/// What a rank does on its GPU: multiplications and sums, memory of its own and memory that all
/// ranks reach, and how it looks from the host. Streams and their order are the backend's.
@NullMarked
package braid.internal.cuda;

import org.jspecify.annotations.NullMarked;
