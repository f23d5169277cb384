/// Commands on stored runs: list, delete, compare.
@NullMarked
package braid.launcher.cli.experiment;

import org.jspecify.annotations.NullMarked;
