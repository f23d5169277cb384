/// Where ranks meet: small values are exchanged under a name, over loopback or inside one process.
@NullMarked
package braid.internal.store;

import org.jspecify.annotations.NullMarked;
