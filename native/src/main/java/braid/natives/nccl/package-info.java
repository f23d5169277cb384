/// NCCL: collectives of a group of GPUs, with one process per GPU.
@NullMarked
package braid.natives.nccl;

import org.jspecify.annotations.NullMarked;
