package braid.launcher.wire;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
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
    Wire.write(out, this, ToRank.class);
  }

  static ToRank read(DataInput in) throws IOException {
    return Wire.read(in, ToRank.class);
  }
}
