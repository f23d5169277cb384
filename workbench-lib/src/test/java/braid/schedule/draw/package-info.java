@NullMarked
package braid.schedule.draw;

import org.jspecify.annotations.NullMarked;
