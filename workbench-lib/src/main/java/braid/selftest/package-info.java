/// The self-test of a machine: what [braid.internal.selftest] can run, run on all ranks of a group
/// and reported.
@NullMarked
package braid.selftest;

import org.jspecify.annotations.NullMarked;
