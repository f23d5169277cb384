package braid.launcher.bench.life;

import braid.launcher.ExitCode;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid bench life`: growth of a session's latency and memory with the number of cells.
@Command(
    name = "life",
    description = "Runs hundreds of cells in a row and compares the last with the first.",
    mixinStandardHelpOptions = true,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {" 0:measured, whether limits were met or not", " 2:a mistake in the options"},
    footerHeading = "%nExamples:%n",
    footer = {"  braid bench life", "  braid bench life -n 8 --cells 2000"})
public final class LifeCommand implements Callable<Integer> {
  private static final double MAX_GROWTH = 1.2;
  private static final int MAX_CELLS = 100_000;
  private static final int STEP = 50;

  @Option(names = "-n", paramLabel = "RANKS", description = "Ranks. Default: ${DEFAULT-VALUE}.")
  private int ranks = 4;

  @Option(
      names = "--cells",
      paramLabel = "COUNT",
      description = "Timed cells, a fifth of each kind. Default: ${DEFAULT-VALUE}.")
  private int cells = 500;

  @Option(
      names = "--warm-up",
      paramLabel = "COUNT",
      description = "Warm-up cells. Default: ${DEFAULT-VALUE}.")
  private int warmUp = 100;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    check("-n", ranks, 1, 64);
    check("--cells", cells, 2 * LifeRun.WINDOW, MAX_CELLS);
    check("--warm-up", warmUp, 0, MAX_CELLS);
    var home = Files.createTempDirectory("braid-bench-life");
    try (var session =
        Session.start(new SessionOptions(ranks, BackendKind.HOST, Optional.empty(), home))) {
      print(LifeRun.of(session, warmUp, cells, this::progress));
    } finally {
      try (var files = Files.walk(home)) {
        for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(file);
        }
      }
    }
    return ExitCode.OK.code();
  }

  private static void check(String option, int value, int least, int most) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s %d"
              .formatted(option, least, most, value, option, Math.max(least, 4)));
    }
  }

  private void progress(int cell) {
    if (cell % STEP == 0) {
      var err = spec.commandLine().getErr();
      err.println("braid bench: cell %d of %d".formatted(cell, warmUp + cells));
      err.flush();
    }
  }

  private void print(LifeRun run) {
    var out = spec.commandLine().getOut();
    out.println(
        "%d cells on %d ranks after %d warm-up cells: declarations, expressions, prints, methods, failures in turn"
            .formatted(cells, ranks, warmUp));
    out.println(times("time per cell", run.millis()));
    out.println(times("CPU time of the front per cell", run.cpuMillis()));
    line("threads, front and ranks", run.warm().threads(), run.end().threads());
    line("open files, front and ranks", run.warm().files(), run.end().files());
    out.println(
        String.format(
            Locale.ROOT,
            "heap of the front after a collection: %.1f MiB after the warm-up, %.1f MiB at the end",
            run.warm().heapMiB(),
            run.end().heapMiB()));
    out.flush();
  }

  private static String times(String title, List<Double> cells) {
    double growth = LifeRun.growth(cells);
    return String.format(
        Locale.ROOT,
        "%s, median of the first %d: %.1f ms, of the last: %.1f ms: × %.2f (limit %.1f: %s)",
        title,
        LifeRun.WINDOW,
        LifeRun.first(cells),
        LifeRun.last(cells),
        growth,
        MAX_GROWTH,
        growth <= MAX_GROWTH ? "met" : "not met");
  }

  private void line(String title, List<Integer> warm, List<Integer> end) {
    spec.commandLine()
        .getOut()
        .println("%s: %s after the warm-up, %s at the end".formatted(title, warm, end));
  }
}
