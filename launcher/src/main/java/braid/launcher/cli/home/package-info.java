/// Where this Braid lives, and what surrounds it: environment, installation, the options that ranks
/// are started with.
@NullMarked
package braid.launcher.cli.home;

import org.jspecify.annotations.NullMarked;
