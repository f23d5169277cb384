@NullMarked
package braid.launcher.cli.run;

import org.jspecify.annotations.NullMarked;
