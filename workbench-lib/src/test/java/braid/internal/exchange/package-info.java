@NullMarked
package braid.internal.exchange;

import org.jspecify.annotations.NullMarked;
