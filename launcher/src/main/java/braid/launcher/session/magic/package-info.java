/// Parts of single magics that need no session.
@NullMarked
package braid.launcher.session.magic;

import org.jspecify.annotations.NullMarked;
