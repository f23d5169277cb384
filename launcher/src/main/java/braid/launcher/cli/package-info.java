/// The `braid` command.
@NullMarked
package braid.launcher.cli;

import org.jspecify.annotations.NullMarked;
