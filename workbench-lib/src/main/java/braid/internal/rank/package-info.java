/// What a rank is told and what it goes by: its environment, its waits, how it closes things, where
/// it shows them.
@NullMarked
package braid.internal.rank;

import org.jspecify.annotations.NullMarked;
