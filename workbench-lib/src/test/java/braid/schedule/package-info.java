@NullMarked
package braid.schedule;

import org.jspecify.annotations.NullMarked;
