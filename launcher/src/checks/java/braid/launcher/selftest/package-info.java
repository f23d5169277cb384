/// The library's self-test as a cell on all ranks, and its report.
@NullMarked
package braid.launcher.selftest;

import org.jspecify.annotations.NullMarked;
