package braid.launcher.cli.run;

import braid.launcher.Counted;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.RunProgress;
import java.io.PrintWriter;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/// Progress for a log: one line when a cell starts, one when it ends, and one every five seconds
/// during long work.
class PlainProgress implements RunProgress {
  private static final long PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);

  final PrintWriter log;
  private final LongSupplier nanoClock;
  private int cells;
  private String running = "";
  private long saidNanos;

  PlainProgress(PrintWriter log) {
    this(log, System::nanoTime);
  }

  PlainProgress(PrintWriter log, LongSupplier nanoClock) {
    this.log = log;
    this.nanoClock = nanoClock;
  }

  @Override
  public synchronized void started(int cells, int ranks) {
    this.cells = cells;
    say("running %s on %s".formatted(Counted.of(cells, "cell"), Counted.of(ranks, "rank")));
  }

  @Override
  public synchronized void cellStarted(String name, String firstLine) {
    running = name;
    saidNanos = nanoClock.getAsLong();
    say("%s of %d: %s".formatted(name, cells, firstLine));
  }

  @Override
  public synchronized void cellProgressed(String line) {
    long now = nanoClock.getAsLong();
    if (now - saidNanos >= PAUSE_NANOS) {
      saidNanos = now;
      say("%s of %d: %s".formatted(running, cells, line));
    }
  }

  @Override
  public synchronized void cellFinished(CellResult cell) {
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

  synchronized void say(String line) {
    log.println(line);
    log.flush();
  }

  @Override
  public synchronized void close() {
    log.flush();
  }
}
