/// Values that all other packages speak of: problems, tunings, types, links, spans and errors.
@NullMarked
package braid.model;

import org.jspecify.annotations.NullMarked;
