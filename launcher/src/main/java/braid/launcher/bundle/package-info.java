/// One archive that runs where there is no Java, no network and no Maven.
@NullMarked
package braid.launcher.bundle;

import org.jspecify.annotations.NullMarked;
