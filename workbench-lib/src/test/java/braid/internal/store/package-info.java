@NullMarked
package braid.internal.store;

import org.jspecify.annotations.NullMarked;
