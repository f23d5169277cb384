/// `braid run`: runs notebooks, shows progress, prints results and writes reports.
@NullMarked
package braid.launcher.cli.run;

import org.jspecify.annotations.NullMarked;
