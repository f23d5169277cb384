@NullMarked
package braid.internal.host;

import org.jspecify.annotations.NullMarked;
