package braid.launcher.ranks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// State of a process and its CPU time, from `/proc/PID/stat`.
public record ProcessState(char state, long cpuTicks) {
  private static final int USER_TIME = 11;
  private static final int SYSTEM_TIME = 12;

  /// Returns the state; empty if the process has ended.
  public static Optional<ProcessState> of(long pid) {
    try {
      var stat = Files.readString(Path.of("/proc", Long.toString(pid), "stat"));
      // The command may contain spaces and brackets; the fields after the last bracket do not.
      var fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1);
      return Optional.of(
          new ProcessState(
              fields[0].charAt(0),
              Long.parseLong(fields[USER_TIME]) + Long.parseLong(fields[SYSTEM_TIME])));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /// Returns true of a process that has ended while its parent has not noticed.
  public boolean hasEnded() {
    return state == 'Z' || state == 'X';
  }

  /// Returns true if a signal or a debugger stopped it.
  boolean isStopped() {
    return state == 'T' || state == 't';
  }
}
