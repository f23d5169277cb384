/// Tests of strict JSON.
@NullMarked
package braid.internal.json;

import org.jspecify.annotations.NullMarked;
