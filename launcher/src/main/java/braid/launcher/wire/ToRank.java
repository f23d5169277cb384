package braid.launcher.wire;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/// Message from the front to a rank. The first six use the execution connection and are answered in
/// order; the rest use the control connection, which delivers them even while a cell runs.
public sealed interface ToRank {
  /// Classes that the front compiled; every rank loads the same bytes.
  record Load(List<ClassBytes> classes) implements ToRank {}

  /// A class. The bytes are shared, not copied, and never modified.
  @SuppressWarnings("ArrayRecordComponent")
  record ClassBytes(String name, byte[] bytes) {}

  /// Runs a static method as a step of the session. With `render` its value is returned in every
  /// format; without it the value stays in the rank.
  record Invoke(String className, String methodName, boolean render, long step) implements ToRank {}

  record VarValue(String className, String varName) implements ToRank {}

  record AddToClasspath(String path) implements ToRank {}

  /// Resumes after a failed cell: waits are no longer released, and a new epoch of groups and
  /// signals begins.
  record Resume(int epoch) implements ToRank {}

  /// Marks the rank's stdout and stderr, so that the front knows where this cell's output ends.
  record Mark(long number) implements ToRank {}

  record Ping(long number) implements ToRank {}

  /// Stops the running cell.
  record Interrupt() implements ToRank {}

  /// Ends this rank's waits for other ranks, because they can no longer complete.
  record Release(String reason) implements ToRank {}

  /// Queries whether the rank is idle: no code of a cell runs in it, and its streams are idle.
  record IdleQuery(long number) implements ToRank {}

  /// Lists the ranks that have ended this step and are idle, so that no other rank's wait in this
  /// step can be completed by them.
  record Departed(long step, List<Integer> ranks) implements ToRank {}

  /// A line for `System.in`, or its end.
  record Input(String line, boolean end) implements ToRank {}

  record Exit() implements ToRank {}

  default void write(DataOutput out) throws IOException {
    switch (this) {
      case Load load -> {
        out.writeByte(0);
        out.writeInt(load.classes.size());
        for (var c : load.classes) {
          Wire.writeText(out, c.name);
          Wire.writeBytes(out, c.bytes);
        }
      }
      case Invoke invoke -> {
        out.writeByte(1);
        Wire.writeText(out, invoke.className);
        Wire.writeText(out, invoke.methodName);
        out.writeBoolean(invoke.render);
        out.writeLong(invoke.step);
      }
      case VarValue value -> {
        out.writeByte(2);
        Wire.writeText(out, value.className);
        Wire.writeText(out, value.varName);
      }
      case AddToClasspath add -> {
        out.writeByte(3);
        Wire.writeText(out, add.path);
      }
      case Resume resume -> {
        out.writeByte(4);
        out.writeInt(resume.epoch);
      }
      case Mark mark -> {
        out.writeByte(5);
        out.writeLong(mark.number);
      }
      case Ping ping -> {
        out.writeByte(6);
        out.writeLong(ping.number);
      }
      case Interrupt() -> out.writeByte(7);
      case Release release -> {
        out.writeByte(8);
        Wire.writeText(out, release.reason);
      }
      case Input input -> {
        out.writeByte(9);
        Wire.writeText(out, input.line);
        out.writeBoolean(input.end);
      }
      case Exit() -> out.writeByte(10);
      case IdleQuery query -> {
        out.writeByte(11);
        out.writeLong(query.number);
      }
      case Departed departed -> {
        out.writeByte(12);
        out.writeLong(departed.step);
        out.writeInt(departed.ranks.size());
        for (int rank : departed.ranks) {
          out.writeInt(rank);
        }
      }
    }
  }

  static ToRank read(DataInput in) throws IOException {
    int kind = in.readUnsignedByte();
    return switch (kind) {
      case 0 -> {
        int count = in.readInt();
        var classes = new ArrayList<ClassBytes>();
        for (int i = 0; i < count; i++) {
          classes.add(new ClassBytes(Wire.readText(in), Wire.readBytes(in)));
        }
        yield new Load(classes);
      }
      case 1 -> new Invoke(Wire.readText(in), Wire.readText(in), in.readBoolean(), in.readLong());
      case 2 -> new VarValue(Wire.readText(in), Wire.readText(in));
      case 3 -> new AddToClasspath(Wire.readText(in));
      case 4 -> new Resume(in.readInt());
      case 5 -> new Mark(in.readLong());
      case 6 -> new Ping(in.readLong());
      case 7 -> new Interrupt();
      case 8 -> new Release(Wire.readText(in));
      case 9 -> new Input(Wire.readText(in), in.readBoolean());
      case 10 -> new Exit();
      case 11 -> new IdleQuery(in.readLong());
      case 12 -> {
        long step = in.readLong();
        var ranks = new ArrayList<Integer>();
        for (int left = in.readInt(); left > 0; left--) {
          ranks.add(in.readInt());
        }
        yield new Departed(step, ranks);
      }
      default -> throw new IOException("the front sent a message of unknown kind " + kind);
    };
  }
}
