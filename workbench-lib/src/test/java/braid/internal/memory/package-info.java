@NullMarked
package braid.internal.memory;

import org.jspecify.annotations.NullMarked;
