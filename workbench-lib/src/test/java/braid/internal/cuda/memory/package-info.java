@NullMarked
package braid.internal.cuda.memory;

import org.jspecify.annotations.NullMarked;
