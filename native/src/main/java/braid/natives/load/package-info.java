/// Finds NVIDIA's libraries, chooses among several, and loads the chosen ones before JavaCPP would
/// look for its own.
@NullMarked
package braid.natives.load;

import org.jspecify.annotations.NullMarked;
