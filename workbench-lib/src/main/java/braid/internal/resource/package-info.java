/// Memory of one rank and symmetric memory, its set-up, and access to numbers in it.
@NullMarked
package braid.internal.resource;

import org.jspecify.annotations.NullMarked;
