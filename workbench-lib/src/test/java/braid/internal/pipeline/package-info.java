@NullMarked
package braid.internal.pipeline;

import org.jspecify.annotations.NullMarked;
