/// Stored runs: the manifest needed to repeat and to trust a run, finding a run by name, and the
/// differences between two runs.
@NullMarked
package braid.launcher.experiment;

import org.jspecify.annotations.NullMarked;
