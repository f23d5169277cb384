@NullMarked
package braid.internal.work;

import org.jspecify.annotations.NullMarked;
