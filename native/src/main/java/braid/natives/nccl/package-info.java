/// NCCL: collectives of a group of GPUs, each with a process of its own.
@NullMarked
package braid.natives.nccl;

import org.jspecify.annotations.NullMarked;
