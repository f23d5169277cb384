/// Parts of individual magics that do not depend on the session.
@NullMarked
package braid.launcher.session.magic;

import org.jspecify.annotations.NullMarked;
