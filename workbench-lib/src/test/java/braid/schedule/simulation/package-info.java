@NullMarked
package braid.schedule.simulation;

import org.jspecify.annotations.NullMarked;
