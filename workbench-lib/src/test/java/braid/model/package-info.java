@NullMarked
package braid.model;

import org.jspecify.annotations.NullMarked;
