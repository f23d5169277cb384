package braid.launcher.ranks;

import braid.model.MimeBundle;

/// Unrequested message of a rank, during a cell or later.
public sealed interface RankEvent {
  int rank();

  /// Text of the rank's stdout or stderr, from Java or native code.
  record Output(int rank, Channel channel, String text) implements RankEvent {}

  /// All output before mark `number` has been reported.
  record OutputMarked(int rank, Channel channel, long number) implements RankEvent {}

  record Displayed(int rank, MimeBundle bundle, String displayId, boolean update)
      implements RankEvent {}

  record Published(int rank, MimeBundle bundle) implements RankEvent {}

  record InputRequested(int rank, String prompt) implements RankEvent {}

  record Died(int rank, Death death) implements RankEvent {}

  /// The rank has not answered for a while. Reported repeatedly until it does.
  ///
  /// @param name rank, host and process
  /// @param why state of its process; may be empty
  record Silent(int rank, String name, long seconds, String why) implements RankEvent {
    @Override
    public String toString() {
      return "%s has not answered for %d s%s"
          .formatted(name, seconds, why.isEmpty() ? "" : "; " + why);
    }
  }

  /// A silent rank answers again, after `seconds`.
  ///
  /// @param name rank, host and process
  record AnswersAgain(int rank, String name, long seconds) implements RankEvent {
    @Override
    public String toString() {
      return "%s answers again after %d s".formatted(name, seconds);
    }
  }

  enum Channel {
    STDOUT,
    STDERR
  }
}
