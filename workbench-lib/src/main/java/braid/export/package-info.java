/// Measured decisions as configurations of training and serving stacks.
@NullMarked
package braid.export;

import org.jspecify.annotations.NullMarked;
