/// `braid calibrate`: measures the machine for predictions.
@NullMarked
package braid.launcher.cli.calibrate;

import org.jspecify.annotations.NullMarked;
