package braid.internal.store;

import braid.internal.rank.BlockedWait;
import java.util.List;

/// How a meeting ended for one member.
public sealed interface Reply {
  /// All members joined.
  record Values(List<byte[]> values) implements Reply {}

  /// The meeting failed; the message names the reason.
  record Failed(String message) implements Reply {}

  /// The members made different calls, which the message names. All of them learn of it.
  record Different(String message) implements Reply {}

  /// The missing members cannot join any more: they have departed.
  record Departed(List<Integer> missing) implements Reply {}

  /// Another rank failed, so this member must not wait.
  record Aborted(String reason) implements Reply {}

  /// Answers a report on a wait, not a meeting.
  record Reported(BlockedWait.Answer answer) implements Reply {}
}
