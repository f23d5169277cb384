/// UCX's one-sided transfers between hosts.
@NullMarked
package braid.natives.ucx;

import org.jspecify.annotations.NullMarked;
