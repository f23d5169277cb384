/// Ranks that the front does not start itself, on this host or others: their agents, which others
/// start, join it over TLS.
@NullMarked
package braid.launcher.hosts;

import org.jspecify.annotations.NullMarked;
