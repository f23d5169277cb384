/// Operations of a model's layer, read from its configuration.
@NullMarked
package braid.shapes;

import org.jspecify.annotations.NullMarked;
