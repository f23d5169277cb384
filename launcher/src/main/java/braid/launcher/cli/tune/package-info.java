/// `braid tune`: tunes operations that the command line names, without a notebook.
@NullMarked
package braid.launcher.cli.tune;

import org.jspecify.annotations.NullMarked;
