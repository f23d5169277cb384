/// NVSHMEM: memory of all GPUs of a group at one offset, called from the host.
@NullMarked
package braid.natives.nvshmem;

import org.jspecify.annotations.NullMarked;
