/// Installation and environment of Braid, and the options that start ranks.
@NullMarked
package braid.launcher.cli.home;

import org.jspecify.annotations.NullMarked;
