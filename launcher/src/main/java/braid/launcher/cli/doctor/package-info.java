/// `braid doctor`: reports which features are available and why others are not.
@NullMarked
package braid.launcher.cli.doctor;

import org.jspecify.annotations.NullMarked;
