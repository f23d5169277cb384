/// The tools behind the methods of schedules, and schedules as JSON.
@NullMarked
package braid.internal.schedule;

import org.jspecify.annotations.NullMarked;
