package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.ranks.RankKind;
import braid.launcher.wire.Wire;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Map;

/// Message between the front and the agent of a rank. The agent's first one is [Join].
sealed interface LinkMessage {
  /// The agent joins as this rank.
  ///
  /// @param size number of ranks that its engine has started; 0 if it does not tell
  record Join(String version, String host, int rank, int size, long pid) implements LinkMessage {}

  /// The front's answer to [Join]; an empty refusal accepts the agent.
  record Answered(String refusal) implements LinkMessage {}

  /// Starts the process of the rank.
  ///
  /// @param start number of the start
  /// @param stdout channel of the process's stdout
  /// @param stderr channel of the process's stderr
  /// @param environment variables of the process
  /// @param defaults variables that it gets unless its host sets them
  record Start(
      int start,
      int stdout,
      int stderr,
      RankKind kind,
      String token,
      Map<String, String> environment,
      Map<String, String> defaults)
      implements LinkMessage {}

  record Started(int start, long pid) implements LinkMessage {}

  /// @param reason why it was not started; empty if it ran
  record Exited(int start, int exitValue, String reason) implements LinkMessage {}

  record Kill(int start) implements LinkMessage {}

  /// The process has connected to a port of its host, which leads to this end in the front.
  record Connect(int channel, int start, End end) implements LinkMessage {}

  /// End of a connection in the front.
  enum End {
    /// The session.
    FRONT,
    STORE
  }

  /// Message to the other end of a channel.
  sealed interface OfChannel extends LinkMessage {
    int channel();
  }

  @SuppressWarnings("ArrayRecordComponent")
  record Data(int channel, byte[] bytes) implements OfChannel {}

  /// This many bytes have been read, so that as many may follow.
  record Allow(int channel, int bytes) implements OfChannel {}

  /// No further bytes follow, and none are read.
  record Close(int channel) implements OfChannel {}

  record Beat(long number) implements LinkMessage {}

  /// Answers [Beat] with the state of the process, or `NO_PROCESS`.
  record Alive(long number, ProcessState state) implements LinkMessage {}

  ProcessState NO_PROCESS = new ProcessState('X', 0);

  /// The run is over.
  record Over() implements LinkMessage {}

  default void write(DataOutput out) throws IOException {
    Wire.write(out, this, LinkMessage.class);
  }

  static LinkMessage read(DataInput in) throws IOException {
    return Wire.read(in, LinkMessage.class);
  }
}
