package braid.launcher.ranks;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/// End of a rank's process, in words.
public record Death(int rank, long pid, int exitValue) {
  /// Base of exit values of processes ended by a signal.
  private static final int SIGNAL_BASE = 128;

  /// Exit value after SIGKILL.
  static final int KILLED = SIGNAL_BASE + 9;

  private static final Map<Integer, String> SIGNALS =
      Map.of(
          1, "SIGHUP", 2, "SIGINT", 4, "SIGILL", 6, "SIGABRT", 7, "SIGBUS", 8, "SIGFPE", 9,
          "SIGKILL", 11, "SIGSEGV", 15, "SIGTERM");

  @Override
  public String toString() {
    return "rank " + rank + " (pid " + pid + ") " + cause();
  }

  /// Returns deaths in words; ranks that ended alike are named together.
  public static String together(List<Death> deaths) {
    var alike = new LinkedHashMap<String, List<Death>>();
    deaths.forEach(each -> alike.computeIfAbsent(each.cause(), _ -> new ArrayList<>()).add(each));
    return alike.entrySet().stream()
        .map(
            each ->
                each.getValue().size() == 1
                    ? each.getValue().getFirst().toString()
                    : "ranks %s (pids %s) %s"
                        .formatted(
                            all(each.getValue(), Death::rank),
                            all(each.getValue(), Death::pid),
                            each.getKey().replaceFirst("^was ", "were ")))
        .collect(Collectors.joining("; "));
  }

  private static String all(List<Death> deaths, Function<Death, Object> number) {
    return deaths.stream().map(number).map(String::valueOf).collect(Collectors.joining(", "));
  }

  public String cause() {
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
