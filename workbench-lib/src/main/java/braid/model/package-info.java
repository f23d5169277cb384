/// Values that all other packages use: problems, tunings, types, links, measurements and errors.
@NullMarked
package braid.model;

import org.jspecify.annotations.NullMarked;
