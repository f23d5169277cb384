/// Machines as data, and a discrete-event simulation of lanes on them. It knows operations on lanes
/// and nothing of the schedules that they come from.
@NullMarked
package braid.schedule.simulation;

import org.jspecify.annotations.NullMarked;
