package braid.launcher.ranks;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/// End of a rank's process, in words.
///
/// @param host name of its host; empty on the front's own
/// @param loss reason for which its end is unknown, as a part of a sentence; empty if it is known
public record Death(int rank, long pid, int exitValue, String host, String loss) {
  /// Base of exit values of processes ended by a signal.
  private static final int SIGNAL_BASE = 128;

  /// Exit value after SIGKILL.
  static final int KILLED = SIGNAL_BASE + 9;

  private static final Map<Integer, String> SIGNALS =
      Map.of(
          1, "SIGHUP", 2, "SIGINT", 4, "SIGILL", 6, "SIGABRT", 7, "SIGBUS", 8, "SIGFPE", 9,
          "SIGKILL", 11, "SIGSEGV", 15, "SIGTERM");

  public Death(int rank, long pid, int exitValue) {
    this(rank, pid, exitValue, "", "");
  }

  /// Returns rank, host and process: "rank 3 on h2 (pid 4711)".
  static String name(int rank, String host, long pid) {
    return "rank %d%s (pid %d)".formatted(rank, host.isEmpty() ? "" : " on " + host, pid);
  }

  /// Returns rank, host and process: "rank 3 on h2 (pid 4711)".
  public String name() {
    return name(rank, host, pid);
  }

  @Override
  public String toString() {
    return name() + " " + cause();
  }

  /// Returns deaths in words; ranks that ended alike are named together.
  public static String together(List<Death> deaths) {
    var alike = new LinkedHashMap<String, List<Death>>();
    deaths.forEach(
        each ->
            alike
                .computeIfAbsent(each.host + " " + each.cause(), _ -> new ArrayList<>())
                .add(each));
    return alike.values().stream()
        .map(each -> each.size() == 1 ? each.getFirst().toString() : several(each))
        .collect(Collectors.joining("; "));
  }

  private static String several(List<Death> deaths) {
    var host = deaths.getFirst().host;
    return "ranks %s%s (pids %s) %s"
        .formatted(
            all(deaths, Death::rank),
            host.isEmpty() ? "" : " on " + host,
            all(deaths, Death::pid),
            deaths.getFirst().cause().replaceFirst("^was ", "were "));
  }

  private static String all(List<Death> deaths, Function<Death, Object> number) {
    return deaths.stream().map(number).map(String::valueOf).collect(Collectors.joining(", "));
  }

  public String cause() {
    if (!loss.isEmpty()) {
      return "was lost: " + loss;
    }
    int signal = exitValue - SIGNAL_BASE;
    if (SIGNALS.containsKey(signal)) {
      return "was killed by " + SIGNALS.get(signal) + " (signal " + signal + ")";
    }
    if (signal > 0 && signal < 65) {
      return "was killed by signal " + signal;
    }
    return "exited with code " + exitValue + (exitValue == 0 ? " (System.exit in a cell?)" : "");
  }
}
