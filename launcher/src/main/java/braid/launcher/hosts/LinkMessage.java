package braid.launcher.hosts;

import braid.launcher.ranks.ProcessState;
import braid.launcher.ranks.RankKind;
import braid.launcher.wire.Wire;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;

/// Message between the front and the agent of a rank. The first message of a link is an [Opening].
sealed interface LinkMessage {
  /// First message of a link, which states its use.
  sealed interface Opening extends LinkMessage {}

  /// The agent joins as this rank.
  ///
  /// @param size number of ranks that its engine has started; 0 if it does not tell
  record Join(String version, String host, int rank, int size, long pid) implements Opening {}

  /// A link that carries a stream of the rank's process.
  ///
  /// @param start number of the start of this process
  record Carry(int rank, int start, Stream stream) implements Opening {}

  enum Stream {
    /// stdout of the process.
    STDOUT,
    /// stderr of the process.
    STDERR,
    /// A connection of the process to the front.
    FRONT,
    /// A connection of the process to the store.
    STORE
  }

  /// The front's answer to [Join]; an empty refusal accepts the agent.
  record Answered(String refusal) implements LinkMessage {}

  /// Starts the process of the rank.
  ///
  /// @param environment variables of the process
  /// @param defaults variables that it gets unless its host sets them
  record Start(
      int start,
      RankKind kind,
      String token,
      Map<String, String> environment,
      Map<String, String> defaults)
      implements LinkMessage {}

  record Started(int start, long pid) implements LinkMessage {}

  /// @param reason why it was not started; empty if it ran
  record Exited(int start, int exitValue, String reason) implements LinkMessage {}

  record Kill(int start) implements LinkMessage {}

  record Beat(long number) implements LinkMessage {}

  /// Answers [Beat] with the state of the process, or `NO_PROCESS`.
  record Alive(long number, ProcessState state) implements LinkMessage {}

  ProcessState NO_PROCESS = new ProcessState('X', 0);

  /// The run is over.
  record End() implements LinkMessage {}

  default void write(DataOutput out) throws IOException {
    switch (this) {
      case Join join -> {
        out.writeByte(0);
        Wire.writeText(out, join.version);
        Wire.writeText(out, join.host);
        out.writeInt(join.rank);
        out.writeInt(join.size);
        out.writeLong(join.pid);
      }
      case Carry carry -> {
        out.writeByte(1);
        out.writeInt(carry.rank);
        out.writeInt(carry.start);
        Wire.writeText(out, carry.stream.name());
      }
      case Answered answered -> {
        out.writeByte(2);
        Wire.writeText(out, answered.refusal);
      }
      case Start start -> {
        out.writeByte(3);
        out.writeInt(start.start);
        Wire.writeText(out, start.kind.name());
        Wire.writeText(out, start.token);
        write(out, start.environment);
        write(out, start.defaults);
      }
      case Started started -> {
        out.writeByte(4);
        out.writeInt(started.start);
        out.writeLong(started.pid);
      }
      case Exited exited -> {
        out.writeByte(5);
        out.writeInt(exited.start);
        out.writeInt(exited.exitValue);
        Wire.writeText(out, exited.reason);
      }
      case Kill kill -> {
        out.writeByte(6);
        out.writeInt(kill.start);
      }
      case Beat beat -> {
        out.writeByte(7);
        out.writeLong(beat.number);
      }
      case Alive alive -> {
        out.writeByte(8);
        out.writeLong(alive.number);
        out.writeChar(alive.state.state());
        out.writeLong(alive.state.cpuTicks());
      }
      case End() -> out.writeByte(9);
    }
  }

  static LinkMessage read(DataInput in) throws IOException {
    int kind = in.readUnsignedByte();
    return switch (kind) {
      case 0 ->
          new Join(Wire.readText(in), Wire.readText(in), in.readInt(), in.readInt(), in.readLong());
      case 1 -> new Carry(in.readInt(), in.readInt(), constant(Stream.class, Wire.readText(in)));
      case 2 -> new Answered(Wire.readText(in));
      case 3 -> {
        int start = in.readInt();
        var rankKind = constant(RankKind.class, Wire.readText(in));
        var token = Wire.readText(in);
        yield new Start(start, rankKind, token, variables(in), variables(in));
      }
      case 4 -> new Started(in.readInt(), in.readLong());
      case 5 -> new Exited(in.readInt(), in.readInt(), Wire.readText(in));
      case 6 -> new Kill(in.readInt());
      case 7 -> new Beat(in.readLong());
      case 8 -> new Alive(in.readLong(), new ProcessState(in.readChar(), in.readLong()));
      case 9 -> new End();
      default -> throw new IOException("a message of unknown kind " + kind);
    };
  }

  private static void write(DataOutput out, Map<String, String> variables) throws IOException {
    out.writeInt(variables.size());
    for (var entry : variables.entrySet()) {
      Wire.writeText(out, entry.getKey());
      Wire.writeText(out, entry.getValue());
    }
  }

  private static Map<String, String> variables(DataInput in) throws IOException {
    var variables = new TreeMap<String, String>();
    for (int left = in.readInt(); left > 0; left--) {
      variables.put(Wire.readText(in), Wire.readText(in));
    }
    return variables;
  }

  private static <T extends Enum<T>> T constant(Class<T> type, String name) throws IOException {
    try {
      return Enum.valueOf(type, name);
    } catch (IllegalArgumentException e) {
      throw new IOException("an unknown " + type.getSimpleName() + ": " + name, e);
    }
  }
}
