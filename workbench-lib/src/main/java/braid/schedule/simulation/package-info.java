/// Machines as data, and a discrete-event simulation of schedules on them.
@NullMarked
package braid.schedule.simulation;

import org.jspecify.annotations.NullMarked;
