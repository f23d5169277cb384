package braid.launcher.ranks;

import braid.MimeBundle;

/// What comes from a rank by itself, while a cell runs or after.
public sealed interface RankEvent {
  int rank();

  /// Text the rank wrote to its stdout or stderr, from Java or from native code.
  record Output(int rank, Channel channel, String text) implements RankEvent {}

  /// Everything written before mark `number` has been reported.
  record OutputMarked(int rank, Channel channel, long number) implements RankEvent {}

  record Displayed(int rank, MimeBundle bundle, String displayId, boolean update)
      implements RankEvent {}

  record Published(int rank, MimeBundle bundle) implements RankEvent {}

  record InputRequested(int rank, String prompt) implements RankEvent {}

  record Died(int rank, Death death) implements RankEvent {}

  enum Channel {
    STDOUT,
    STDERR
  }
}
