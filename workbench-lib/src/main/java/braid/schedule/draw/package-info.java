/// Timelines of schedules, as text and as pictures. Internal to the library: users call
/// [braid.schedule.Schedule#timeline] and [braid.schedule.Schedule#display].
@NullMarked
package braid.schedule.draw;

import org.jspecify.annotations.NullMarked;
