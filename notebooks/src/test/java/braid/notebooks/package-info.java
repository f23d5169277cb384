@NullMarked
package braid.notebooks;

import org.jspecify.annotations.NullMarked;
