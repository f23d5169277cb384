/// What a rank is and has: its environment, its place, its waits, what it shows.
@NullMarked
package braid.internal.rank;

import org.jspecify.annotations.NullMarked;
