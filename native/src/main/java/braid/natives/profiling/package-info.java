/// What a GPU did and when, by CUPTI, and how it fared meanwhile, by NVML.
@NullMarked
package braid.natives.profiling;

import org.jspecify.annotations.NullMarked;
