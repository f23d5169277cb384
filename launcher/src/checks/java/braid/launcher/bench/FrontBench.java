package braid.launcher.bench;

import braid.launcher.bench.CellRounds.CellKind;
import braid.launcher.bench.report.FrontReport;
import braid.launcher.bench.report.Machine;
import braid.launcher.bench.report.Measure;
import braid.launcher.bench.report.Row;
import braid.launcher.machine.RankCount;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;

/// All measurements of `braid bench front`, with the limits that Braid guarantees.
record FrontBench(
    List<Integer> rankCounts, int starts, int warmUp, int cells, Consumer<String> progress) {
  private static final List<Integer> RANK_COUNTS = List.of(1, 4, 8);
  private static final int RANKS = FrontReport.PEER_ENGINES;
  private static final int MANY_RANKS = 8;

  private static final double MAX_READY_SECONDS = 1.5;
  private static final double MAX_FIRST_SECONDS = 3;
  private static final double MAX_CELL_MILLIS = 25;
  private static final double MAX_MANY_RANKS_OVER_ONE = 1.4;
  private static final double MAX_RANK_MIB = 100;

  /// Fewer repeats, because ipyparallel takes several seconds to start.
  private static final int MAX_PEER_STARTS = 3;

  /// Returns the default rank counts that fit this machine.
  static List<Integer> rankCounts(RankCount machine) {
    return RANK_COUNTS.stream().filter(count -> count <= machine.most()).toList();
  }

  FrontReport run() throws IOException, InterruptedException {
    var machine = Machine.here();
    int startRanks = Math.min(RANKS, rankCounts.getLast());
    var fronts = new ArrayList<FreshFront>();
    for (int i = 1; i <= starts; i++) {
      progress.accept("start %d of %d, %d ranks".formatted(i, starts, startRanks));
      fronts.add(in("braid", directory -> FreshFront.start(startRanks, directory)));
    }
    var rounds = in("cells", home -> CellRounds.run(rankCounts, warmUp, cells, home, progress));
    var peers = peers();

    var rows = new ArrayList<Row>();
    rows.addAll(startRows(startRanks, fronts, peers));
    rows.addAll(cellRows(rounds, peers));
    rows.addAll(memoryRows(startRanks, fronts, peers));
    return new FrontReport(machine, rankCounts, rows, rounds.stages(), remarks(machine, peers));
  }

  private List<Ipyparallel> peers() throws IOException, InterruptedException {
    var peers = new ArrayList<Ipyparallel>();
    int repeats = Math.min(starts, MAX_PEER_STARTS);
    for (int i = 1; i <= repeats; i++) {
      progress.accept("ipyparallel, start %d of %d".formatted(i, repeats));
      int counted = i == repeats ? cells : 0;
      var peer =
          in(
              "ipyparallel",
              directory -> Ipyparallel.run(counted == 0 ? 0 : warmUp, counted, directory));
      if (peer.isEmpty()) {
        return List.of();
      }
      peers.add(peer.get());
    }
    return peers;
  }

  private List<Row> startRows(int ranks, List<FreshFront> fronts, List<Ipyparallel> peers) {
    return List.of(
        new Row(
            "start to ranks ready",
            "s",
            Map.of(ranks, range(fronts, FreshFront::readySeconds)),
            limit(MAX_READY_SECONDS, RANKS),
            measured(peers, Ipyparallel::readySeconds)),
        new Row(
            "start to the first result",
            "s",
            Map.of(ranks, range(fronts, FreshFront::firstSeconds)),
            limit(MAX_FIRST_SECONDS, RANKS),
            measured(peers, Ipyparallel::firstSeconds)));
  }

  private List<Row> cellRows(CellRounds rounds, List<Ipyparallel> peers) {
    var rows = new ArrayList<Row>();
    for (var kind : CellKind.values()) {
      var name = kind.name().toLowerCase(Locale.ROOT);
      var byRanks = rounds.cells(kind);
      var peer =
          peers.isEmpty()
              ? Optional.<Measure>empty()
              : Optional.of(Measure.tenths(peers.getLast().cells().of(kind)));
      rows.add(new Row(name + " cell", "ms", byRanks, limit(MAX_CELL_MILLIS, RANKS), peer));
      var one = byRanks.get(1);
      var many = byRanks.get(MANY_RANKS);
      if (one != null && many != null) {
        rows.add(
            new Row(
                "  %d ranks over 1".formatted(MANY_RANKS),
                "×",
                Map.of(MANY_RANKS, Measure.exactly(many.median() / one.median())),
                limit(MAX_MANY_RANKS_OVER_ONE, MANY_RANKS),
                Optional.empty()));
      }
    }
    return rows;
  }

  private List<Row> memoryRows(int ranks, List<FreshFront> fronts, List<Ipyparallel> peers) {
    var rows = new ArrayList<Row>();
    rows.add(
        new Row(
            "an idle rank, resident",
            "MiB",
            Map.of(ranks, resident(fronts.stream().flatMap(f -> f.ranks().stream()))),
            limit(MAX_RANK_MIB, RANKS),
            peers.isEmpty()
                ? Optional.empty()
                : Optional.of(resident(peers.stream().flatMap(p -> p.engines().stream())))));
    rows.add(
        new Row(
            "the front, resident",
            "MiB",
            Map.of(ranks, resident(fronts.stream().map(FreshFront::front))),
            Optional.empty(),
            measured(
                peers,
                peer -> peer.others().stream().mapToDouble(ProcessMemory::residentMiB).sum())));
    var all =
        fronts.stream()
            .map(f -> together(Stream.concat(Stream.of(f.front()), f.ranks().stream())))
            .flatMap(Optional::stream)
            .toList();
    if (!all.isEmpty()) {
      var peer =
          peers.stream()
              .map(p -> together(Stream.concat(p.others().stream(), p.engines().stream())))
              .flatMap(Optional::stream)
              .toList();
      rows.add(
          new Row(
              "all processes, shared pages once",
              "MiB",
              Map.of(ranks, Measure.range(all)),
              Optional.empty(),
              peer.isEmpty() ? Optional.empty() : Optional.of(Measure.range(peer))));
    }
    rows.add(
        new Row(
            "processes",
            "count",
            Map.of(ranks, range(fronts, FreshFront::processes)),
            Optional.empty(),
            measured(peers, Ipyparallel::processes)));
    return rows;
  }

  private static Optional<Double> together(Stream<ProcessMemory> processes) {
    var sum = ProcessMemory.total(processes.toList());
    return sum.isPresent() ? Optional.of(sum.getAsDouble()) : Optional.empty();
  }

  private static Measure resident(Stream<ProcessMemory> processes) {
    return Measure.range(processes.map(ProcessMemory::residentMiB).toList());
  }

  private static <T> Measure range(List<T> all, ToDoubleFunction<T> value) {
    return Measure.range(all.stream().map(value::applyAsDouble).toList());
  }

  private static <T> Optional<Measure> measured(List<T> all, ToDoubleFunction<T> value) {
    return all.isEmpty() ? Optional.empty() : Optional.of(range(all, value));
  }

  private static Optional<Row.Limit> limit(double most, int ranks) {
    return Optional.of(new Row.Limit(most, ranks));
  }

  private List<String> remarks(Machine before, List<Ipyparallel> peers) {
    var remarks = new ArrayList<String>();
    remarks.add(
        String.format(
            Locale.ROOT,
            "The machine's load was %.1f before and %.1f after; a load from others slows all rows.",
            before.load(),
            Machine.here().load()));
    remarks.add(
        "Cells: median (10th to 90th percentile) of %d after %d warm-up cells; all rank counts take turns, cell by cell."
            .formatted(cells, warmUp));
    remarks.add(
        "Starts and memory: median (range) of %d fresh processes, timed from outside; memory after the first cell, OpenBLAS not yet loaded."
            .formatted(starts));
    remarks.add(
        peers.isEmpty()
            ? "ipyparallel is not installed for /usr/bin/python3, so it was not measured; try "
                + Ipyparallel.REMEDY
            : "ipyparallel: %d starts; its front is its client and its controller's processes; their resident memory is summed although they share some."
                .formatted(peers.size()));
    if (!rankCounts.equals(RANK_COUNTS)) {
      remarks.add(
          "%s ranks are the default; this machine fits %s.".formatted(RANK_COUNTS, rankCounts));
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
      remove(directory);
    }
  }

  private static void remove(Path directory) throws IOException {
    try (var files = Files.walk(directory)) {
      for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    }
  }
}
