/// Results of a benchmark of Braid as text, Markdown and JSON.
@NullMarked
package braid.launcher.bench.report;

import org.jspecify.annotations.NullMarked;
