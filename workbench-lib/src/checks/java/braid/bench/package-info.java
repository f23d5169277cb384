/// Workloads that are timed beside other libraries.
@NullMarked
package braid.bench;

import org.jspecify.annotations.NullMarked;
