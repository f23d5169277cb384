@NullMarked
package braid.internal.cuda;

import org.jspecify.annotations.NullMarked;
