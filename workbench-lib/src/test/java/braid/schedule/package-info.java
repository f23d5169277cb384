/// Tests of schedules as values.
@NullMarked
package braid.schedule;

import org.jspecify.annotations.NullMarked;
