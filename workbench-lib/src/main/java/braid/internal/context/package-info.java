/// Everything that belongs to one rank: its backend, its store, and rank-local state of higher
/// packages.
@NullMarked
package braid.internal.context;

import org.jspecify.annotations.NullMarked;
