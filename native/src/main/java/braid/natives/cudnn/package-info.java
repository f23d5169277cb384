/// cuDNN: fused attention with statistics, forward and backward, as graphs of its backend API.
@NullMarked
package braid.natives.cudnn;

import org.jspecify.annotations.NullMarked;
