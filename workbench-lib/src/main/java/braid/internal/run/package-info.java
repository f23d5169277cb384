/// Execution of schedules: one rank's steps become work of its streams.
@NullMarked
package braid.internal.run;

import org.jspecify.annotations.NullMarked;
