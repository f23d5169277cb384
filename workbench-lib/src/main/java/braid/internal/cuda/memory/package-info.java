/// Kinds of symmetric memory on GPUs, independent of each other's libraries.
@NullMarked
package braid.internal.cuda.memory;

import org.jspecify.annotations.NullMarked;
