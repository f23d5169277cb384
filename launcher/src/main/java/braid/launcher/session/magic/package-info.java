/// What single magics do, as far as it needs no session.
@NullMarked
package braid.launcher.session.magic;

import org.jspecify.annotations.NullMarked;
