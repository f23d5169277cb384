@NullMarked
package braid.internal.cuda.device;

import org.jspecify.annotations.NullMarked;
