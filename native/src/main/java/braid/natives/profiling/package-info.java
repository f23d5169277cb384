/// What a GPU did and when, by CUPTI.
@NullMarked
package braid.natives.profiling;

import org.jspecify.annotations.NullMarked;
