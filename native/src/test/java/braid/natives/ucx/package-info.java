@NullMarked
package braid.natives.ucx;

import org.jspecify.annotations.NullMarked;
