package braid.launcher.bench;

import braid.internal.json.RecordJson;
import braid.launcher.bench.FrontProbe.CellMillis;
import braid.launcher.cli.home.Installation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiPredicate;

/// A front and its ranks in fresh processes, timed from their start as by a shell, with their
/// memory when idle: Braid's, or ipyparallel's client, controller and engines.
///
/// @param rankMiB resident memory of each rank
/// @param frontMiB resident memory of all other processes
/// @param totalMiB memory of all with shared pages divided; 0 if Linux does not count it
record FrontProcess(
    double readySeconds,
    double firstSeconds,
    CellMillis cells,
    List<Double> rankMiB,
    double frontMiB,
    double totalMiB,
    int processes) {
  static final String PEER_REMEDY = "apt-get install python3-ipyparallel";

  private static final Duration PATIENCE = Duration.ofSeconds(90);
  private static final String SCRIPT = "/braid/bench/ipyparallel_front.py";
  private static final Path PYTHON = Path.of("/usr/bin/python3");
  private static final double KIB_PER_MIB = 1024;

  /// Starts Braid in a directory and runs cells in it.
  static FrontProcess braid(int ranks, int warmUp, int cells, Path directory)
      throws IOException, InterruptedException {
    var command = new ArrayList<>(Installation.command());
    command.addAll(List.of("bench", "front-probe", ranks + "", warmUp + "", cells + ""));
    return measured(command, Map.of(), directory, (process, front) -> !process.equals(front))
        .orElseThrow();
  }

  /// Starts ipyparallel in a directory and runs cells in it; empty if it is not installed.
  static Optional<FrontProcess> ipyparallel(int engines, int warmUp, int cells, Path directory)
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
    var home = directory.toString();
    return measured(
        List.of(PYTHON.toString(), script.toString(), engines + "", warmUp + "", cells + ""),
        Map.of(
            "HOME", home,
            "IPYTHONDIR", home + "/ipython",
            "JUPYTER_CONFIG_DIR", home + "/config",
            "JUPYTER_DATA_DIR", home + "/data",
            "JUPYTER_RUNTIME_DIR", home + "/runtime"),
        directory,
        (process, _) -> process.info().commandLine().orElse("").contains("ipyparallel.engine"));
  }

  private static Optional<FrontProcess> measured(
      List<String> command,
      Map<String, String> environment,
      Path directory,
      BiPredicate<ProcessHandle, ProcessHandle> isRank)
      throws IOException, InterruptedException {
    try (var child = new TimedChild("the front", command, environment, directory, PATIENCE)) {
      var ready = child.next();
      if (ready.line().equals("absent")) {
        return Optional.empty();
      }
      var first = child.expect("first");
      var json = RecordJson.parse("times of cells", child.expect("{").line());
      var cells = new RecordJson().read("times of cells", json, CellMillis.class);
      var processes = new ArrayList<>(child.descendants());
      processes.add(child.handle());
      var ranks = new ArrayList<Double>();
      double front = 0;
      double total = 0;
      for (var process : processes) {
        var folder = Path.of("/proc", Long.toString(process.pid()));
        double resident = mebibytes(folder.resolve("status"), "VmRSS:");
        if (isRank.test(process, child.handle())) {
          ranks.add(resident);
        } else {
          front += resident;
        }
        // Resident pages that processes share count fully for each; the proportional set divides
        // them.
        total += mebibytes(folder.resolve("smaps_rollup"), "Pss:");
      }
      return Optional.of(
          new FrontProcess(
              ready.seconds(), first.seconds(), cells, ranks, front, total, processes.size()));
    }
  }

  /// Returns a field of a file of /proc; 0 if the process has just ended or Linux lacks the field.
  static double mebibytes(Path file, String name) {
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
