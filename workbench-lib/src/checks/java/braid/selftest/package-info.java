/// The self-test of a machine: runs the cases of [braid.internal.selftest] on all ranks of a group
/// and reports the results.
@NullMarked
package braid.selftest;

import org.jspecify.annotations.NullMarked;
