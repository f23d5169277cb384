package braid.launcher.cli.run;

import braid.launcher.Counted;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.RunProgress;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/// Progress for a log: one line when a cell starts, one when it ends, one every five seconds during
/// long work that reports progress, and one at least every ten seconds in any case.
class PlainProgress implements RunProgress {
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final long MOST_SILENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

  final PrintWriter log;
  private final LongSupplier nanoClock;
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().daemon().name("progress").factory());
  private int cells;
  private String running = "";
  private String latest = "";
  private long startedNanos;
  private long saidNanos;

  PlainProgress(PrintWriter log) {
    this(log, System::nanoTime);
  }

  PlainProgress(PrintWriter log, LongSupplier nanoClock) {
    this.log = log;
    this.nanoClock = nanoClock;
    var _ = clock.scheduleWithFixedDelay(this::tick, 1, 1, TimeUnit.SECONDS);
  }

  /// Says that the cell still runs, if nothing else was said for long.
  synchronized void tick() {
    long now = nanoClock.getAsLong();
    if (!running.isEmpty() && now - saidNanos >= MOST_SILENCE_NANOS) {
      var elapsed = Duration.ofNanos(now - startedNanos);
      say(
          "%s of %d: runs for %d s%s"
              .formatted(
                  running, cells, elapsed.toSeconds(), latest.isEmpty() ? "" : "; " + latest));
    }
  }

  @Override
  public synchronized void started(int cells, int ranks) {
    this.cells = cells;
    say("running %s on %s".formatted(Counted.of(cells, "cell"), Counted.of(ranks, "rank")));
  }

  @Override
  public synchronized void cellStarted(String name, String firstLine) {
    running = name;
    latest = "";
    startedNanos = nanoClock.getAsLong();
    say("%s of %d: %s".formatted(name, cells, firstLine));
  }

  @Override
  public synchronized void cellProgressed(String line) {
    latest = line;
    if (nanoClock.getAsLong() - saidNanos >= PAUSE_NANOS) {
      say("%s of %d: %s".formatted(running, cells, line));
    }
  }

  @Override
  public synchronized void cellFinished(CellResult cell) {
    running = "";
    say(
        "%s of %d: %s in %s%s"
            .formatted(
                cell.name(),
                cells,
                cell.failure().isPresent() ? "failed" : "done",
                RunSummary.time(cell.elapsed()),
                cell.failedAsExpected() ? ", as its tag allows" : ""));
    if (cell.status() == CellResult.Status.FAILED) {
      RunSummary.failure(cell).forEach(this::say);
    }
  }

  @Override
  public synchronized void cellNoted(String line) {
    say("%s of %d: %s".formatted(running, cells, line));
  }

  @Override
  public synchronized void cellMeasured(String line) {
    say("%s of %d: found %s".formatted(running, cells, line));
  }

  synchronized void say(String line) {
    log.println(line);
    log.flush();
    heard();
  }

  /// Notes that something was printed.
  final void heard() {
    saidNanos = nanoClock.getAsLong();
  }

  @Override
  public synchronized void close() {
    clock.shutdownNow();
    log.flush();
  }
}
