/// Memory that the processes of one machine share, and words in it by which they tell each other
/// how far they are.
@NullMarked
package braid.internal.shared;

import org.jspecify.annotations.NullMarked;
