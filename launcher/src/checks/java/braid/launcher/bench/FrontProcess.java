package braid.launcher.bench;

import braid.launcher.cli.home.Installation;
import braid.model.BraidException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

/// A front and its ranks in fresh processes, timed from their start as by a shell, with their
/// memory when idle: Braid's, or ipyparallel's client, controller and engines.
///
/// @param rankMiB resident memory of each rank
/// @param frontMiB resident memory of all other processes
/// @param totalMiB memory of all with shared pages divided; empty if Linux does not count it
/// @param cellMillis times of cells by kind, of ipyparallel
record FrontProcess(
    double readySeconds,
    double firstSeconds,
    List<Double> rankMiB,
    double frontMiB,
    List<Double> totalMiB,
    int processes,
    Map<String, List<Double>> cellMillis) {
  static final String PEER_REMEDY = "apt-get install python3-ipyparallel";

  private static final String SCRIPT = "/braid/bench/ipyparallel_front.py";
  private static final Path PYTHON = Path.of("/usr/bin/python3");
  private static final double KIB_PER_MIB = 1024;

  static FrontProcess braid(int ranks, Path directory) throws IOException, InterruptedException {
    var command = new ArrayList<>(Installation.command());
    command.addAll(
        List.of("bench", "start-probe", "--ranks", Integer.toString(ranks), "--home", "."));
    try (var child =
        new TimedChild("braid", command, Map.of(), directory, Duration.ofSeconds(30))) {
      var ready = child.expect(StartProbe.READY);
      var first = child.expect(StartProbe.FIRST);
      if (!first.line().equals(StartProbe.FIRST + "2")) {
        throw new BraidException("the first cell of a fresh braid returned " + first.line());
      }
      return measured(child, each -> !each.equals(child.handle()), ready, first, Map.of());
    }
  }

  /// Starts ipyparallel in a directory of its own and runs cells in it; empty if it is not
  /// installed.
  static Optional<FrontProcess> ipyparallel(int warmUp, int cells, Path directory)
      throws IOException, InterruptedException {
    if (!Files.isExecutable(PYTHON)) {
      return Optional.empty();
    }
    var script = directory.resolve("ipyparallel_front.py");
    try (var source = FrontProcess.class.getResourceAsStream(SCRIPT)) {
      if (source == null) {
        throw new IllegalStateException(SCRIPT + " is not in the jar of the checks");
      }
      Files.copy(source, script);
    }
    var command = new ArrayList<>(List.of(PYTHON.toString(), script.toString()));
    List.of(FrontBench.PEER_ENGINES, warmUp, cells).forEach(count -> command.add(count + ""));
    var home = directory.toString();
    var environment =
        Map.of(
            "HOME", home,
            "IPYTHONDIR", home + "/ipython",
            "JUPYTER_CONFIG_DIR", home + "/config",
            "JUPYTER_DATA_DIR", home + "/data",
            "JUPYTER_RUNTIME_DIR", home + "/runtime");
    try (var child =
        new TimedChild("ipyparallel", command, environment, directory, Duration.ofSeconds(90))) {
      var ready = child.next();
      if (ready.line().equals("absent")) {
        return Optional.empty();
      }
      if (!ready.line().equals("ready")) {
        throw new BraidException("ipyparallel must print \"ready\" but printed " + ready.line());
      }
      var first = child.expect("first");
      var times = JsonParser.parseString(child.expect("{").line()).getAsJsonObject();
      var cellMillis = new HashMap<String, List<Double>>();
      times
          .asMap()
          .forEach(
              (kind, all) ->
                  cellMillis.put(
                      kind,
                      all.getAsJsonArray().asList().stream()
                          .map(value -> value.getAsDouble())
                          .toList()));
      return Optional.of(
          measured(
              child,
              each -> each.info().commandLine().orElse("").contains("ipyparallel.engine"),
              ready,
              first,
              cellMillis));
    }
  }

  List<Double> cells(CellRounds.CellKind kind) {
    return cellMillis.getOrDefault(kind.title(), List.of());
  }

  private static FrontProcess measured(
      TimedChild child,
      Predicate<ProcessHandle> isRank,
      TimedChild.Line ready,
      TimedChild.Line first,
      Map<String, List<Double>> cellMillis) {
    var processes = new ArrayList<>(child.descendants());
    processes.add(child.handle());
    var ranks = new ArrayList<Double>();
    double front = 0;
    double total = 0;
    for (var process : processes) {
      var folder = Path.of("/proc", Long.toString(process.pid()));
      double resident = mebibytes(folder.resolve("status"), "VmRSS:");
      if (isRank.test(process)) {
        ranks.add(resident);
      } else {
        front += resident;
      }
      // Resident pages that processes share count fully for each; the proportional set divides
      // them.
      total += mebibytes(folder.resolve("smaps_rollup"), "Pss:");
    }
    return new FrontProcess(
        ready.seconds(),
        first.seconds(),
        ranks,
        front,
        total > 0 ? List.of(total) : List.of(),
        processes.size(),
        cellMillis);
  }

  /// Returns a field of a file of /proc; 0 if the process has just ended or Linux lacks the field.
  private static double mebibytes(Path file, String name) {
    try (var lines = Files.lines(file)) {
      return lines
          .filter(line -> line.startsWith(name))
          .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")) / KIB_PER_MIB)
          .findFirst()
          .orElse(0);
    } catch (IOException e) {
      return 0;
    }
  }
}
