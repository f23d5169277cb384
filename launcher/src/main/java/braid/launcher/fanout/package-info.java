/// Connects the compiler to the ranks: loads and runs each step of a cell on all of them.
@NullMarked
package braid.launcher.fanout;

import org.jspecify.annotations.NullMarked;
