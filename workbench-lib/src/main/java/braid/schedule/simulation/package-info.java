/// Machines as data, and a discrete-event simulation of operations on their lanes, independent of
/// schedules.
@NullMarked
package braid.schedule.simulation;

import org.jspecify.annotations.NullMarked;
