@NullMarked
package braid.internal.resource;

import org.jspecify.annotations.NullMarked;
