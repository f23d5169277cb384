/// All that one rank has: its backend, its store and whatever higher rooms keep for it.
@NullMarked
package braid.internal.context;

import org.jspecify.annotations.NullMarked;
