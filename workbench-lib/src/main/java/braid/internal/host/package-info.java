/// The host backend: streams that are threads, copy engine and pacer, cores, and multiplication by
/// OpenBLAS.
@NullMarked
package braid.internal.host;

import org.jspecify.annotations.NullMarked;
