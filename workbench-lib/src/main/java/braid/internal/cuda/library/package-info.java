/// Collectives by the libraries that there are for GPUs.
@NullMarked
package braid.internal.cuda.library;

import org.jspecify.annotations.NullMarked;
