@NullMarked
package braid.launcher.notebook.report;

import org.jspecify.annotations.NullMarked;
