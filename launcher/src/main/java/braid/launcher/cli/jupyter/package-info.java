/// The commands that have to do with Jupyter: its kernelspecs, and starting it.
@NullMarked
package braid.launcher.cli.jupyter;

import org.jspecify.annotations.NullMarked;
