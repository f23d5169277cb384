/// The CUDA driver: devices, streams, graphs, kernels, and memory that other processes can map.
@NullMarked
package braid.natives.cuda;

import org.jspecify.annotations.NullMarked;
