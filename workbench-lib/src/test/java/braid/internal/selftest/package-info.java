@NullMarked
package braid.internal.selftest;

import org.jspecify.annotations.NullMarked;
