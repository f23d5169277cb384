@NullMarked
package braid.selftest;

import org.jspecify.annotations.NullMarked;
