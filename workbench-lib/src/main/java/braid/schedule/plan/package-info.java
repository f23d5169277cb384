/// Planners, which write the schedules of problems with built-in tunings, and their parts. Internal
/// to the library: users call [braid.schedule.Schedule#of].
@NullMarked
package braid.schedule.plan;

import org.jspecify.annotations.NullMarked;
