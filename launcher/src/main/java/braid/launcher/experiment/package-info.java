/// What it takes to repeat a run and to trust it: the manifest that is kept with what was measured,
/// where runs are found again, and in what two of them differ.
@NullMarked
package braid.launcher.experiment;

import org.jspecify.annotations.NullMarked;
