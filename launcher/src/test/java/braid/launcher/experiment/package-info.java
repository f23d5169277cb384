@NullMarked
package braid.launcher.experiment;

import org.jspecify.annotations.NullMarked;
