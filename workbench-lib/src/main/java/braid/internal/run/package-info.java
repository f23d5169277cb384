/// Executes schedules: enqueues one rank's steps on its streams.
@NullMarked
package braid.internal.run;

import org.jspecify.annotations.NullMarked;
