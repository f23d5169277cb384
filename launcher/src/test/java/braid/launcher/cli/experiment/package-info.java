@NullMarked
package braid.launcher.cli.experiment;

import org.jspecify.annotations.NullMarked;
