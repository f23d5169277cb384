/// Finds NVIDIA's libraries, chooses among several copies, and loads the chosen ones before JavaCPP
/// searches for its own.
@NullMarked
package braid.natives.load;

import org.jspecify.annotations.NullMarked;
