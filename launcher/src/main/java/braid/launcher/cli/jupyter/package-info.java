/// Commands for Jupyter: install its kernelspecs and start it.
@NullMarked
package braid.launcher.cli.jupyter;

import org.jspecify.annotations.NullMarked;
