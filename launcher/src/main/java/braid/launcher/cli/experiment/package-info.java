/// Commands on runs that are kept: which there are, and what two of them differ by.
@NullMarked
package braid.launcher.cli.experiment;

import org.jspecify.annotations.NullMarked;
