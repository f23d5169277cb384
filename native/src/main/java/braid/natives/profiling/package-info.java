/// GPU activity and its times, recorded by CUPTI.
@NullMarked
package braid.natives.profiling;

import org.jspecify.annotations.NullMarked;
