/// Collectives by GPU libraries: NCCL and NVSHMEM.
@NullMarked
package braid.internal.cuda.library;

import org.jspecify.annotations.NullMarked;
