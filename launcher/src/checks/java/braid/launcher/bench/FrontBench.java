package braid.launcher.bench;

import braid.launcher.Counted;
import braid.launcher.experiment.Surroundings;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// All measurements of `braid bench front`: fresh fronts with each number of ranks, and
/// ipyparallel's, take turns. The medians at 4 ranks have the limits that Braid guarantees.
record FrontBench(
    List<Integer> rankCounts, int starts, int warmUp, int cells, Consumer<String> progress) {
  /// Number of ipyparallel engines, and of ranks in the comparison and for the limits.
  static final int COMPARED_RANKS = 4;

  private static final String NOTHING = "–";
  private static final double MAX_CELL_MILLIS = 25;

  /// A row of the report.
  ///
  /// @param limit of the median
  record Quantity(
      String name, @Nullable Double limit, Function<FrontProcess, List<Double>> values) {}

  private static final List<Quantity> QUANTITIES =
      List.of(
          new Quantity("start to ranks ready, s", 1.5, front -> List.of(front.readySeconds())),
          new Quantity("start to the first result, s", 3.0, front -> List.of(front.firstSeconds())),
          new Quantity(
              "declaration cell, ms", MAX_CELL_MILLIS, front -> front.cells().declaration()),
          new Quantity("expression cell, ms", MAX_CELL_MILLIS, front -> front.cells().expression()),
          new Quantity("printing cell, ms", MAX_CELL_MILLIS, front -> front.cells().printing()),
          new Quantity("an idle rank, resident, MiB", 100.0, FrontProcess::rankMiB),
          new Quantity("the front, resident, MiB", null, front -> List.of(front.frontMiB())),
          new Quantity(
              "all processes, shared pages once, MiB", null, front -> List.of(front.totalMiB())),
          new Quantity("processes, count", null, front -> List.of(front.processes() + 0.0)));

  /// Measures everything and returns a Markdown table with its conditions.
  String report() throws IOException, InterruptedException {
    var machine = Surroundings.machine();
    var braid = new LinkedHashMap<Integer, List<FrontProcess>>();
    var peers = new ArrayList<FrontProcess>();
    for (int start = 1; start <= starts; start++) {
      for (int ranks : rankCounts) {
        progress.accept("start %d of %d, %s".formatted(start, starts, Counted.of(ranks, "rank")));
        braid
            .computeIfAbsent(ranks, _ -> new ArrayList<>())
            .add(in(directory -> FrontProcess.braid(ranks, warmUp, cells, directory)));
      }
      progress.accept("start %d of %d, ipyparallel".formatted(start, starts));
      in(directory -> FrontProcess.ipyparallel(COMPARED_RANKS, warmUp, cells, directory))
          .ifPresent(peers::add);
    }
    var table = new StringBuilder("| measurement |");
    rankCounts.forEach(ranks -> table.append(" " + Counted.of(ranks, "rank") + " |"));
    table.append(
        " limit at %d ranks | ipyparallel, %d engines | Braid ÷ it |\n"
            .formatted(COMPARED_RANKS, COMPARED_RANKS));
    table.append("|---".repeat(rankCounts.size() + 4)).append("|\n");
    for (var quantity : QUANTITIES) {
      table.append("| ").append(quantity.name()).append(" |");
      rankCounts.forEach(
          ranks ->
              table.append(" ").append(words(measure(quantity, braid.get(ranks)))).append(" |"));
      var compared = measure(quantity, braid.get(COMPARED_RANKS));
      var peer = measure(quantity, peers);
      table.append(
          " %s | %s | %s |\n"
              .formatted(
                  verdict(quantity.limit(), compared),
                  words(peer),
                  peer == null || compared == null
                      ? NOTHING
                      : number(compared.median() / peer.median())));
    }
    return """
        Measured by `braid bench front` on %s:
        %s, %d cores, %d MiB; Java %s; %s, %s; load %.1f before and %.1f after.

        %s
        - Median (10th to 90th percentile) of %s of each size, which took turns; of cells: %d in each, after %d to warm up.
        - Times of starts are taken from outside. Memory is that after the cells; OpenBLAS is not loaded.
        - %s
        """
        .formatted(
            Instant.now().truncatedTo(ChronoUnit.SECONDS),
            machine.get("processor").getAsString(),
            machine.get("cores").getAsInt(),
            machine.get("memoryMiB").getAsLong(),
            Runtime.version(),
            machine.get("os").getAsString(),
            machine.get("kernel").getAsString(),
            machine.get("load").getAsDouble(),
            Surroundings.machine().get("load").getAsDouble(),
            table,
            Counted.of(starts, "fresh front"),
            cells,
            warmUp,
            peers.isEmpty()
                ? "ipyparallel is not installed for /usr/bin/python3, so it was not measured; try "
                    + FrontProcess.PEER_REMEDY
                : "ipyparallel's front is its client and its controller's processes; their resident memory is summed although they share some.");
  }

  private static @Nullable Measure measure(Quantity quantity, @Nullable List<FrontProcess> fronts) {
    return fronts == null || fronts.isEmpty()
        ? null
        : Measure.tenths(
            fronts.stream().flatMap(front -> quantity.values().apply(front).stream()).toList());
  }

  static String verdict(@Nullable Double limit, @Nullable Measure measured) {
    return limit == null
        ? NOTHING
        : number(limit)
            + (measured == null
                ? ", not measured"
                : measured.median() <= limit ? ", met" : ", MISSED");
  }

  static String words(@Nullable Measure measure) {
    return measure == null
        ? NOTHING
        : "%s (%s–%s)"
            .formatted(number(measure.median()), number(measure.low()), number(measure.high()));
  }

  /// Formats three significant digits: more would be noise.
  private static String number(double value) {
    int digits = value == Math.rint(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return String.format(Locale.ROOT, "%%.%df".formatted(digits), value);
  }

  private interface Step<T> {
    T in(Path directory) throws IOException, InterruptedException;
  }

  /// Runs a step in a temporary directory, which is removed afterwards.
  private static <T> T in(Step<T> step) throws IOException, InterruptedException {
    var directory = Files.createTempDirectory("braid-bench");
    try {
      return step.in(directory);
    } finally {
      WholeFolder.delete(directory);
    }
  }
}
