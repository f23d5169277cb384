/// Memory and signals between hosts: which rank is where, and one-sided transfers.
@NullMarked
package braid.internal.remote;

import org.jspecify.annotations.NullMarked;
