/// What symmetric memory is made of on GPUs: each kind keeps to itself what it needs.
@NullMarked
package braid.internal.cuda.memory;

import org.jspecify.annotations.NullMarked;
