/// Tests of what a notebook says.
@NullMarked
package braid;

import org.jspecify.annotations.NullMarked;
