/// Meetings of ranks: they exchange small values under a key, over loopback or inside one process.
@NullMarked
package braid.internal.store;

import org.jspecify.annotations.NullMarked;
