/// The contract of all pipelines and collectives: its cases, and plain loops that compute the
/// expected results. Tests and the self-test of a machine run them.
@NullMarked
package braid.internal.selftest;

import org.jspecify.annotations.NullMarked;
