package braid.launcher.bench;

import braid.launcher.bench.report.Measure;
import braid.launcher.cell.Cell;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.launcher.session.Stages;
import braid.model.BraidException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.ToLongFunction;

/// Times cells in sessions of several sizes. All sessions are open at once and take turns, cell by
/// cell, so that whatever else the machine does meets all of them alike.
final class CellRounds {
  /// What people run most: each asks the compiler and the ranks for something else.
  enum Kind {
    DECLARATION,
    EXPRESSION,
    PRINTING;

    /// A declaration's name is new each time, as in a notebook that grows.
    private String source(int round) {
      return switch (this) {
        case DECLARATION -> "int a" + round + " = 17;";
        case EXPRESSION -> "a + 1";
        case PRINTING -> "System.out.println(a);";
      };
    }

    private String printed() {
      return this == PRINTING ? "1\n" : "";
    }

    private String result() {
      return this == EXPRESSION ? "2" : "";
    }
  }

  private static final Map<String, ToLongFunction<Stages>> STAGES = new LinkedHashMap<>();

  static {
    STAGES.put("split into snippets", Stages::splitNanos);
    STAGES.put("compile", Stages::compileNanos);
    STAGES.put("load on the ranks", Stages::loadNanos);
    STAGES.put("run on the ranks", Stages::runNanos);
    STAGES.put("wait for their output", Stages::outputNanos);
  }

  /// One session, and what its cells took in milliseconds.
  private static final class Timed {
    final Session session;
    final CellTimes cells = new CellTimes();
    final Map<String, List<Double>> stages = new LinkedHashMap<>();
    private int run;

    Timed(Session session) {
      this.session = session;
    }

    void run(Kind kind, int round, boolean counts) {
      var before = session.stages();
      double millis = run(kind.source(round), kind.printed(), kind.result());
      if (!counts) {
        return;
      }
      cells.add(kind, millis);
      if (kind == Kind.EXPRESSION) {
        var after = session.stages();
        STAGES.forEach(
            (stage, nanos) ->
                stages
                    .computeIfAbsent(stage, s -> new ArrayList<>())
                    .add((nanos.applyAsLong(after) - nanos.applyAsLong(before)) / 1e6));
      }
    }

    double run(String source, String printed, String result) {
      var output = new Captured();
      var cell = new Cell("cell " + ++run, source);
      long start = System.nanoTime();
      var outcome = session.run(cell, output);
      long elapsed = System.nanoTime() - start;
      var text = outcome.result().map(bundle -> bundle.text()).orElse("");
      if (!outcome.succeeded() || !output.printed().equals(printed) || !text.equals(result)) {
        throw new BraidException(
            "%s printed \"%s\" and gave %s".formatted(source, output.printed().strip(), outcome));
      }
      return elapsed / 1e6;
    }
  }

  private final Map<Integer, Timed> byRanks = new LinkedHashMap<>();

  private CellRounds() {}

  static CellRounds run(
      List<Integer> rankCounts, int warmUp, int cells, Path home, Consumer<String> progress) {
    var rounds = new CellRounds();
    try {
      for (int ranks : rankCounts) {
        var options = new SessionOptions(ranks, "host", Optional.empty(), home);
        var timed = new Timed(Session.start(options));
        rounds.byRanks.put(ranks, timed);
        timed.run("int a = 1;", "", "");
      }
      progress.accept("%d + %d rounds of cells on %s ranks".formatted(warmUp, cells, rankCounts));
      for (int round = 0; round < warmUp + cells; round++) {
        for (var kind : Kind.values()) {
          for (var timed : rounds.byRanks.values()) {
            timed.run(kind, round, round >= warmUp);
          }
        }
      }
      return rounds;
    } finally {
      rounds.byRanks.values().forEach(timed -> timed.session.close());
    }
  }

  Map<Integer, Measure> cells(Kind kind) {
    var measures = new LinkedHashMap<Integer, Measure>();
    byRanks.forEach((ranks, timed) -> measures.put(ranks, Measure.tenths(timed.cells.of(kind))));
    return measures;
  }

  /// Where the time of an expression cell goes.
  Map<Integer, Map<String, Measure>> stages() {
    var all = new LinkedHashMap<Integer, Map<String, Measure>>();
    byRanks.forEach(
        (ranks, timed) -> {
          var stages = new LinkedHashMap<String, Measure>();
          timed.stages.forEach((stage, millis) -> stages.put(stage, Measure.tenths(millis)));
          all.put(ranks, stages);
        });
    return all;
  }
}
