/// Work for streams as values: multiplications, sums, copies, and their matrices. Backends decide
/// how to run them.
@NullMarked
package braid.internal.work;

import org.jspecify.annotations.NullMarked;
