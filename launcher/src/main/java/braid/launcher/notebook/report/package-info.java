/// What is written of a run for others: a page for people, XML for CI.
@NullMarked
package braid.launcher.notebook.report;

import org.jspecify.annotations.NullMarked;
