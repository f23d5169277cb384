/// Schedules as data: the copies, multiplications, sums and signals of every rank, in order. A
/// planner builds a [braid.schedule.Schedule] from a problem; backends execute it, and it is
/// checked, drawn and simulated without running it.
@NullMarked
package braid.schedule;

import org.jspecify.annotations.NullMarked;
