/// How measurements are kept and shown: JSON forms, statistics, tables.
@NullMarked
package braid.internal.report;

import org.jspecify.annotations.NullMarked;
