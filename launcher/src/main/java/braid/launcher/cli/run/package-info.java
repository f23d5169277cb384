/// How `braid run` goes through its notebooks, and what it says of them.
@NullMarked
package braid.launcher.cli.run;

import org.jspecify.annotations.NullMarked;
