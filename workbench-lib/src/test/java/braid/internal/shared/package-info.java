@NullMarked
package braid.internal.shared;

import org.jspecify.annotations.NullMarked;
