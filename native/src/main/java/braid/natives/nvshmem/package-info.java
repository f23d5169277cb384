/// NVSHMEM: memory at the same offset of every GPU of a group, called from the host.
@NullMarked
package braid.natives.nvshmem;

import org.jspecify.annotations.NullMarked;
