@NullMarked
package braid.internal.run;

import org.jspecify.annotations.NullMarked;
