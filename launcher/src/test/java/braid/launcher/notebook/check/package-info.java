@NullMarked
package braid.launcher.notebook.check;

import org.jspecify.annotations.NullMarked;
