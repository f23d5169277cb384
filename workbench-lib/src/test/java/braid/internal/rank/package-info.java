@NullMarked
package braid.internal.rank;

import org.jspecify.annotations.NullMarked;
