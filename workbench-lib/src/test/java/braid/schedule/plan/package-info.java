@NullMarked
package braid.schedule.plan;

import org.jspecify.annotations.NullMarked;
