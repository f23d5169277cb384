/// Tests of the API that notebooks use.
@NullMarked
package braid;

import org.jspecify.annotations.NullMarked;
