/// Processes of other stacks, which run beside the ranks.
@NullMarked
package braid.internal.peer;

import org.jspecify.annotations.NullMarked;
