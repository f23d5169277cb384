/// Values that all other packages speak of: problems, tunings, types, links, what was measured, and
/// errors.
@NullMarked
package braid.model;

import org.jspecify.annotations.NullMarked;
