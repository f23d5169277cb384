package braid.launcher.bench;

import braid.launcher.bench.report.FrontReport;
import braid.model.BraidException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/// The same measurements of ipyparallel, the common alternative: Debian's package, in a separate
/// directory. `cells` are milliseconds.
record Ipyparallel(
    double readySeconds,
    double firstSeconds,
    CellTimes cells,
    List<ProcessMemory> engines,
    List<ProcessMemory> others,
    int processes) {
  static final String REMEDY = "apt-get install python3-ipyparallel";

  private static final String SCRIPT = "/braid/bench/ipyparallel_front.py";
  private static final Path PYTHON = Path.of("/usr/bin/python3");
  private static final Duration PATIENCE = Duration.ofSeconds(90);
  private static final String ENGINE = "ipyparallel.engine";

  /// Starts ipyparallel and runs cells in it; empty if it is not installed.
  static Optional<Ipyparallel> run(int warmUp, int cells, Path directory)
      throws IOException, InterruptedException {
    if (!Files.isExecutable(PYTHON)) {
      return Optional.empty();
    }
    var script = directory.resolve("ipyparallel_front.py");
    try (var source = Ipyparallel.class.getResourceAsStream(SCRIPT)) {
      if (source == null) {
        throw new IllegalStateException(SCRIPT + " is not in Braid's jar");
      }
      Files.copy(source, script);
    }
    var command =
        List.of(
            PYTHON.toString(),
            script.toString(),
            Integer.toString(FrontReport.PEER_ENGINES),
            Integer.toString(warmUp),
            Integer.toString(cells));
    try (var child =
        new TimedChild("ipyparallel", command, environment(directory), directory, PATIENCE)) {
      var ready = child.next();
      if (ready.line().equals("absent")) {
        return Optional.empty();
      }
      if (!ready.line().equals("ready")) {
        throw new BraidException("ipyparallel must print \"ready\" but printed " + ready.line());
      }
      var first = child.expect("first");
      var times = times(child.expect("{").line());
      var engines = new ArrayList<ProcessMemory>();
      var others = new ArrayList<ProcessMemory>();
      var descendants = child.descendants();
      ProcessMemory.of(child.handle()).ifPresent(others::add);
      for (var process : descendants) {
        var line = process.info().commandLine().orElse("");
        ProcessMemory.of(process).ifPresent((line.contains(ENGINE) ? engines : others)::add);
      }
      return Optional.of(
          new Ipyparallel(
              ready.seconds(), first.seconds(), times, engines, others, 1 + descendants.size()));
    }
  }

  /// Environment that isolates it from the user's files.
  private static Map<String, String> environment(Path directory) {
    var home = directory.toString();
    return Map.of(
        "HOME", home,
        "IPYTHONDIR", home + "/ipython",
        "JUPYTER_CONFIG_DIR", home + "/config",
        "JUPYTER_DATA_DIR", home + "/data",
        "JUPYTER_RUNTIME_DIR", home + "/runtime");
  }

  private static CellTimes times(String json) {
    var times = new CellTimes();
    var object = JsonParser.parseString(json).getAsJsonObject();
    for (var kind : CellRounds.CellKind.values()) {
      object
          .getAsJsonArray(kind.name().toLowerCase(Locale.ROOT))
          .forEach(value -> times.add(kind, value.getAsDouble()));
    }
    return times;
  }
}
