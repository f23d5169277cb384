@NullMarked
package braid.launcher.cli.tune;

import org.jspecify.annotations.NullMarked;
