/// The contract that every pipeline and every collective keeps: its cases, and plain loops to hold
/// them to. Tests run them, and so does whoever wants to know of a machine whether all is right
/// there.
@NullMarked
package braid.internal.selftest;

import org.jspecify.annotations.NullMarked;
