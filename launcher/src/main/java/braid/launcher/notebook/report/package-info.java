/// Reports of a run: an HTML page for people, JUnit XML for CI.
@NullMarked
package braid.launcher.notebook.report;

import org.jspecify.annotations.NullMarked;
