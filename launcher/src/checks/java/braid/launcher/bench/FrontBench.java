package braid.launcher.bench;

import braid.launcher.experiment.Surroundings;
import braid.launcher.machine.RankCount;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// All measurements of `braid bench front`, with the limits that Braid guarantees.
record FrontBench(
    List<Integer> rankCounts, int starts, int warmUp, int cells, Consumer<String> progress) {
  /// Number of ipyparallel engines, and of ranks in the comparison.
  static final int PEER_ENGINES = 4;

  /// Fewer repeats, because ipyparallel takes several seconds to start.
  private static final int MAX_PEER_STARTS = 3;

  private static final List<Integer> RANK_COUNTS = List.of(1, 4, 8);
  private static final String NOTHING = "–";

  /// Measurements in the order of the table.
  private static final List<Quantity> STARTS =
      List.of(
          new Quantity("start to ranks ready, s", 1.5, front -> List.of(front.readySeconds())),
          new Quantity(
              "start to the first result, s", 3.0, front -> List.of(front.firstSeconds())));

  private static final List<Quantity> MEMORY =
      List.of(
          new Quantity("an idle rank, resident, MiB", 100.0, FrontProcess::rankMiB),
          new Quantity("the front, resident, MiB", null, front -> List.of(front.frontMiB())),
          new Quantity("all processes, shared pages once, MiB", null, FrontProcess::totalMiB),
          new Quantity("processes, count", null, front -> List.of(front.processes() + 0.0)));

  private static final double MAX_CELL_MILLIS = 25;
  private static final int MANY_RANKS = 8;
  private static final double MAX_MANY_RANKS_OVER_ONE = 1.4;

  /// A quantity of a front, with the limit of its median.
  private record Quantity(
      String name, @Nullable Double limit, Function<FrontProcess, List<Double>> values) {
    Optional<Measure> of(List<FrontProcess> fronts) {
      var all = fronts.stream().flatMap(front -> values.apply(front).stream()).toList();
      return all.isEmpty() ? Optional.empty() : Optional.of(Measure.range(all));
    }
  }

  /// Returns the default rank counts that fit this machine.
  static List<Integer> rankCounts(RankCount machine) {
    return RANK_COUNTS.stream().filter(count -> count <= machine.most()).toList();
  }

  /// Measures everything and returns two tables in aligned Markdown, with the conditions.
  String report() throws IOException, InterruptedException {
    var machine = Surroundings.machine();
    int startRanks = Math.min(PEER_ENGINES, rankCounts.getLast());
    var fronts = new ArrayList<FrontProcess>();
    for (int i = 1; i <= starts; i++) {
      progress.accept("start %d of %d, %d ranks".formatted(i, starts, startRanks));
      fronts.add(in("braid", directory -> FrontProcess.braid(startRanks, directory)));
    }
    var rounds = in("cells", home -> CellRounds.run(rankCounts, warmUp, cells, home, progress));
    var peers = peers();

    var table = new ArrayList<List<String>>();
    table.add(head("measurement", "limit", "verdict", "ipyparallel, 4 engines", "Braid ÷ it"));
    STARTS.forEach(each -> table.add(row(each, startRanks, fronts, peers)));
    for (var kind : CellRounds.CellKind.values()) {
      var byRanks = rounds.cells(kind);
      var peer = peers.isEmpty() ? null : Measure.tenths(peers.getLast().cells(kind));
      table.add(row(kind.title() + " cell, ms", byRanks, MAX_CELL_MILLIS, PEER_ENGINES, peer));
      var one = byRanks.get(1);
      var many = byRanks.get(MANY_RANKS);
      if (one != null && many != null) {
        var ratio = Map.of(MANY_RANKS, Measure.range(List.of(many.median() / one.median())));
        table.add(row("8 ranks over 1, ×", ratio, MAX_MANY_RANKS_OVER_ONE, MANY_RANKS, null));
      }
    }
    MEMORY.forEach(each -> table.add(row(each, startRanks, fronts, peers)));
    var stages = new ArrayList<List<String>>();
    stages.add(head("stage of an expression cell, ms"));
    rounds.stages().forEach((stage, byRanks) -> stages.add(start(stage, byRanks)));

    return "Measured by `braid bench front` on %s:\n%s.\n\n%s\n%s\n\n%s"
        .formatted(
            Instant.now().truncatedTo(ChronoUnit.SECONDS),
            words(machine),
            aligned(table),
            String.join("\n", remarks(machine, peers.size())),
            aligned(stages));
  }

  private List<FrontProcess> peers() throws IOException, InterruptedException {
    var peers = new ArrayList<FrontProcess>();
    int repeats = Math.min(starts, MAX_PEER_STARTS);
    for (int i = 1; i <= repeats; i++) {
      progress.accept("ipyparallel, start %d of %d".formatted(i, repeats));
      int timed = i == repeats ? cells : 0;
      int before = timed == 0 ? 0 : warmUp;
      var peer = in("ipyparallel", folder -> FrontProcess.ipyparallel(before, timed, folder));
      if (peer.isEmpty()) {
        return List.of();
      }
      peers.add(peer.get());
    }
    return peers;
  }

  private List<String> head(String first, String... last) {
    var ranks = rankCounts.stream().map(count -> count == 1 ? "1 rank" : count + " ranks");
    return Stream.of(Stream.of(first), ranks, Stream.of(last)).flatMap(words -> words).toList();
  }

  private List<String> row(
      Quantity quantity, int ranks, List<FrontProcess> fronts, List<FrontProcess> peers) {
    var byRanks = quantity.of(fronts).map(measure -> Map.of(ranks, measure)).orElse(Map.of());
    var peer = quantity.of(peers).orElse(null);
    return row(quantity.name, byRanks, quantity.limit, PEER_ENGINES, peer);
  }

  private List<String> start(String name, Map<Integer, Measure> byRanks) {
    var words = new ArrayList<String>();
    words.add(name);
    rankCounts.forEach(ranks -> words.add(words(byRanks.get(ranks))));
    return words;
  }

  /// Returns a row of the first table; the limit is that of the median at a number of ranks.
  List<String> row(
      String name,
      Map<Integer, Measure> byRanks,
      @Nullable Double limit,
      int limitedRanks,
      @Nullable Measure peer) {
    var words = start(name, byRanks);
    var limited = byRanks.get(limitedRanks);
    var compared = byRanks.get(PEER_ENGINES);
    words.add(limit == null ? NOTHING : number(limit) + " at " + limitedRanks);
    words.add(
        limit == null
            ? NOTHING
            : limited == null ? "not measured" : limited.median() <= limit ? "met" : "MISSED");
    words.add(words(peer));
    words.add(
        peer == null || compared == null ? NOTHING : number(compared.median() / peer.median()));
    return words;
  }

  private static String words(@Nullable Measure measure) {
    return measure == null
        ? NOTHING
        : measure.repeats() == 1
            ? number(measure.median())
            : "%s (%s–%s)"
                .formatted(number(measure.median()), number(measure.low()), number(measure.high()));
  }

  /// Formats three significant digits: more would be noise.
  private static String number(double value) {
    int digits = value == Math.rint(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return String.format(Locale.ROOT, "%%.%df".formatted(digits), value);
  }

  static String aligned(List<List<String>> rows) {
    var text = new StringBuilder();
    var widths = rows.getFirst().stream().mapToInt(String::length).toArray();
    rows.forEach(
        row -> {
          for (int i = 0; i < widths.length; i++) {
            widths[i] = Math.max(widths[i], row.get(i).length());
          }
        });
    for (int i = 0; i < rows.size(); i++) {
      for (int column = 0; column < widths.length; column++) {
        text.append("| %%-%ds ".formatted(widths[column]).formatted(rows.get(i).get(column)));
      }
      text.append("|\n");
      if (i == 0) {
        for (int width : widths) {
          text.append('|').repeat('-', width + 2);
        }
        text.append("|\n");
      }
    }
    return text.toString();
  }

  private static String words(JsonObject machine) {
    return "%s, %d cores, %d MiB; Java %s; %s, %s"
        .formatted(
            machine.get("processor").getAsString(),
            machine.get("cores").getAsInt(),
            machine.get("memoryMiB").getAsLong(),
            Runtime.version(),
            machine.get("os").getAsString(),
            machine.get("kernel").getAsString());
  }

  private List<String> remarks(JsonObject before, int peers) {
    var remarks = new ArrayList<String>();
    remarks.add(
        "- The machine's load was %.1f before and %.1f after; a load from others slows all rows."
            .formatted(
                before.get("load").getAsDouble(),
                Surroundings.machine().get("load").getAsDouble()));
    remarks.add(
        "- Cells: median (10th to 90th percentile) of %d after %d warm-up cells; all rank counts take turns, cell by cell."
            .formatted(cells, warmUp));
    remarks.add(
        "- Starts and memory: median (range) of %d fresh processes, timed from outside; memory after the first cell, OpenBLAS not yet loaded."
            .formatted(starts));
    remarks.add(
        peers == 0
            ? "- ipyparallel is not installed for /usr/bin/python3, so it was not measured; try "
                + FrontProcess.PEER_REMEDY
            : "- ipyparallel: %d starts; its front is its client and its controller's processes; their resident memory is summed although they share some."
                .formatted(peers));
    if (!rankCounts.equals(RANK_COUNTS)) {
      remarks.add(
          "- %s ranks are the default; this machine fits %s.".formatted(RANK_COUNTS, rankCounts));
    }
    return remarks;
  }

  private interface Step<T> {
    T in(Path directory) throws IOException, InterruptedException;
  }

  /// Runs a step in a temporary directory, which is removed afterwards.
  private static <T> T in(String name, Step<T> step) throws IOException, InterruptedException {
    var directory = Files.createTempDirectory("braid-bench-" + name);
    try {
      return step.in(directory);
    } finally {
      try (var files = Files.walk(directory)) {
        for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.deleteIfExists(file);
        }
      }
    }
  }
}
