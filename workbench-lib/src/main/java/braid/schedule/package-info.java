/// Schedules as data: which rank copies, multiplies, adds and signals, in which order. A planner
/// makes a [braid.schedule.Schedule] from a problem; backends execute it, and it is checked, drawn
/// and simulated without running anything.
@NullMarked
package braid.schedule;

import org.jspecify.annotations.NullMarked;
