/// Packs Braid into one archive that runs without Java, network and Maven.
@NullMarked
package braid.launcher.bundle;

import org.jspecify.annotations.NullMarked;
