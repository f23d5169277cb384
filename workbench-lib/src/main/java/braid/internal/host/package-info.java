/// The backend of the host: streams that are threads, the copy engine and its pace, cores, and
/// multiplication by OpenBLAS.
@NullMarked
package braid.internal.host;

import org.jspecify.annotations.NullMarked;
