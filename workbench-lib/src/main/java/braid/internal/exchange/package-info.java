/// What ranks do for each other: parts and chunks of what they exchange, the signals between them,
/// and the collectives laid out on streams, whatever is computed before or after.
@NullMarked
package braid.internal.exchange;

import org.jspecify.annotations.NullMarked;
