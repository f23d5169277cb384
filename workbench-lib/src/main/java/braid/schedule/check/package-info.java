/// The check of schedules: deadlocks, races and wrong outputs. Internal to the library: users call
/// [braid.schedule.Schedule#check].
@NullMarked
package braid.schedule.check;

import org.jspecify.annotations.NullMarked;
