/// A cell, what it puts out and how it ends: what the faces of a session and the session itself
/// share.
@NullMarked
package braid.launcher.cell;

import org.jspecify.annotations.NullMarked;
