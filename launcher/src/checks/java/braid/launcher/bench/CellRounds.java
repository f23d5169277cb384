package braid.launcher.bench;

import braid.launcher.cell.Cell;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.launcher.session.StageTimes;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.ToLongFunction;

/// Times cells in sessions of several sizes. All sessions are open at once and take turns, cell by
/// cell, so that other load of the machine affects all of them alike.
final class CellRounds {
  /// Kinds of timed cells; each exercises other parts of the compiler and the ranks.
  enum CellKind {
    DECLARATION,
    EXPRESSION,
    PRINTING;

    /// Source of the cell. A declaration's name is new in each round, as in a growing notebook.
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

    String title() {
      return name().toLowerCase(Locale.ROOT);
    }

    private String result() {
      return this == EXPRESSION ? "2" : "";
    }
  }

  private static final Map<String, ToLongFunction<StageTimes>> STAGES = new LinkedHashMap<>();

  static {
    STAGES.put("split into snippets", StageTimes::splitNanos);
    STAGES.put("compile", StageTimes::compileNanos);
    STAGES.put("load on the ranks", StageTimes::loadNanos);
    STAGES.put("run on the ranks", StageTimes::runNanos);
    STAGES.put("wait for their output", StageTimes::outputNanos);
  }

  /// A session and the times of its cells in milliseconds.
  private static final class TimedSession {
    final Session session;
    final Map<CellKind, List<Double>> cells = new EnumMap<>(CellKind.class);
    final Map<String, List<Double>> stages = new LinkedHashMap<>();
    private int run;

    TimedSession(Session session) {
      this.session = session;
    }

    void run(CellKind kind, int round, boolean counts) {
      var before = session.stages();
      double millis = run(kind.source(round), kind.printed(), kind.result());
      if (!counts) {
        return;
      }
      cells.computeIfAbsent(kind, _ -> new ArrayList<>()).add(millis);
      if (kind == CellKind.EXPRESSION) {
        var after = session.stages();
        STAGES.forEach(
            (stage, nanos) ->
                stages
                    .computeIfAbsent(stage, s -> new ArrayList<>())
                    .add((nanos.applyAsLong(after) - nanos.applyAsLong(before)) / 1e6));
      }
    }

    double run(String source, String printed, String result) {
      var output = new CapturedOutput();
      var cell = new Cell("cell " + ++run, source);
      long start = System.nanoTime();
      var outcome = session.run(cell, output);
      long elapsed = System.nanoTime() - start;
      var text = outcome.result().map(bundle -> bundle.text()).orElse("");
      if (!outcome.succeeded() || !output.printed().equals(printed) || !text.equals(result)) {
        throw new BraidException(
            "%s printed \"%s\" and returned %s"
                .formatted(source, output.printed().strip(), outcome));
      }
      return elapsed / 1e6;
    }
  }

  private final Map<Integer, TimedSession> byRanks = new LinkedHashMap<>();

  private CellRounds() {}

  static CellRounds run(
      List<Integer> rankCounts, int warmUp, int cells, Path home, Consumer<String> progress) {
    var rounds = new CellRounds();
    try {
      for (int ranks : rankCounts) {
        var options = new SessionOptions(ranks, BackendKind.HOST, Optional.empty(), home);
        var timed = new TimedSession(Session.start(options));
        rounds.byRanks.put(ranks, timed);
        timed.run("int a = 1;", "", "");
      }
      progress.accept("%d + %d rounds of cells on %s ranks".formatted(warmUp, cells, rankCounts));
      for (int round = 0; round < warmUp + cells; round++) {
        for (var kind : CellKind.values()) {
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

  Map<Integer, Measure> cells(CellKind kind) {
    var measures = new LinkedHashMap<Integer, Measure>();
    byRanks.forEach(
        (ranks, timed) ->
            measures.put(ranks, Measure.tenths(timed.cells.getOrDefault(kind, List.of()))));
    return measures;
  }

  /// Returns the time of each stage of an expression cell by number of ranks.
  Map<String, Map<Integer, Measure>> stages() {
    var all = new LinkedHashMap<String, Map<Integer, Measure>>();
    byRanks.forEach(
        (ranks, timed) ->
            timed.stages.forEach(
                (stage, millis) ->
                    all.computeIfAbsent(stage, _ -> new LinkedHashMap<>())
                        .put(ranks, Measure.tenths(millis))));
    return all;
  }
}
