/// Memory, of one rank and of all, and how ranks set it up together.
@NullMarked
package braid.internal.resource;

import org.jspecify.annotations.NullMarked;
