/// Packs Braid into one archive that runs on a host without Java, Maven or network.
@NullMarked
package braid.launcher.bundle;

import org.jspecify.annotations.NullMarked;
