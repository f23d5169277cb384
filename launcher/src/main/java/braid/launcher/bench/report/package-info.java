/// What a benchmark of Braid found, and how it is shown: as text, Markdown and JSON.
@NullMarked
package braid.launcher.bench.report;

import org.jspecify.annotations.NullMarked;
