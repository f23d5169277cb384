@NullMarked
package braid.launcher.selftest;

import org.jspecify.annotations.NullMarked;
