@NullMarked
package braid.internal.backend;

import org.jspecify.annotations.NullMarked;
