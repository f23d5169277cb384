/// Memory shared by the processes of one machine, and signal words in it.
@NullMarked
package braid.internal.shared;

import org.jspecify.annotations.NullMarked;
