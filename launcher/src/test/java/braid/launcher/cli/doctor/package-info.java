/// Tests of `braid doctor`.
@NullMarked
package braid.launcher.cli.doctor;

import org.jspecify.annotations.NullMarked;
