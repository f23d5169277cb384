@NullMarked
package braid.internal.remote;

import org.jspecify.annotations.NullMarked;
