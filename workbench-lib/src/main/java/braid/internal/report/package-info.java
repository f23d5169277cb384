/// How measurements are shown: tables, texts, and what a notebook makes of them.
@NullMarked
package braid.internal.report;

import org.jspecify.annotations.NullMarked;
