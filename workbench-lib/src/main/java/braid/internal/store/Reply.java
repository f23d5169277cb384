package braid.internal.store;

import java.util.List;

/// How a meeting ended for one member.
public sealed interface Reply {
  /// All came.
  record Values(List<byte[]> values) implements Reply {}

  /// It cannot end well any more; the message says why.
  record Failed(String message) implements Reply {}

  /// Those who have not come cannot come any more: they have departed.
  record Departed(List<Integer> missing) implements Reply {}

  /// Somebody else failed, and nobody shall wait for it.
  record Aborted(String reason) implements Reply {}
}
