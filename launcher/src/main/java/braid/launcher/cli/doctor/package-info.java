/// `braid doctor`: what is here, or why not.
@NullMarked
package braid.launcher.cli.doctor;

import org.jspecify.annotations.NullMarked;
