package braid.launcher.cli.run;

import braid.launcher.Counted;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.RunProgress;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/// Progress for a terminal: one line that is overwritten, with a bar and a running clock. Failures
/// and notes stay on the screen.
final class TerminalProgress implements RunProgress {
  private static final int BAR_COLUMNS = 20;
  private static final long TICK_MILLIS = 250;
  private static final String CLEAR = "\r\u001b[K";

  private final PrintWriter screen;
  private final int columns;
  private final long startNanos = System.nanoTime();
  private final ScheduledExecutorService clock =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().daemon().name("progress").factory());
  private int cells;
  private int done;
  private int ranks;
  private String running = "starting the ranks";
  private boolean closed;

  TerminalProgress(PrintWriter screen, int columns) {
    this.screen = VisibleText.terminal(screen);
    this.columns = columns;
    var _ = clock.scheduleAtFixedRate(this::draw, 0, TICK_MILLIS, TimeUnit.MILLISECONDS);
  }

  @Override
  public synchronized void started(int cells, int ranks) {
    this.cells = cells;
    this.ranks = ranks;
    draw();
  }

  @Override
  public synchronized void cellStarted(String name, String firstLine) {
    running = firstLine;
    draw();
  }

  /// Shows the line at the next tick.
  @Override
  public synchronized void cellProgressed(String line) {
    running = line;
  }

  @Override
  public synchronized void cellNoted(String line) {
    screen.println(CLEAR + line);
    draw();
  }

  @Override
  public synchronized void cellMeasured(String line) {
    screen.println(CLEAR + "found   " + VisibleText.line(line));
    draw();
  }

  @Override
  public synchronized void cellFinished(CellResult cell) {
    done++;
    if (cell.status() == CellResult.Status.FAILED) {
      screen.print(CLEAR);
      RunSummary.failure(cell).forEach(line -> screen.println(VisibleText.line(line)));
      running = "ending the ranks";
      done--;
    }
    draw();
  }

  private synchronized void draw() {
    if (!closed) {
      screen.print(CLEAR + line(Duration.ofNanos(System.nanoTime() - startNanos)));
      screen.flush();
    }
  }

  /// Returns the line; the running code gets the remaining columns.
  synchronized String line(Duration elapsed) {
    var shown = VisibleText.line(running);
    if (cells == 0) {
      return shown;
    }
    int filled = BAR_COLUMNS * done / cells;
    var head =
        "[%s%s] cell %d of %d "
            .formatted(
                "#".repeat(filled),
                "-".repeat(BAR_COLUMNS - filled),
                Math.min(done + 1, cells),
                cells);
    var tail = "  %s  %s".formatted(Counted.of(ranks, "rank"), RunSummary.time(elapsed));
    int room = Math.max(0, columns - 1 - head.length() - tail.length());
    var code = shown.length() <= room ? shown : shown.substring(0, Math.max(0, room - 1)) + "…";
    var line = head + (room == 0 ? "" : code) + tail;
    return line.length() < columns ? line : line.substring(0, Math.max(0, columns - 1));
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      clock.shutdownNow();
      screen.print(CLEAR);
      screen.flush();
    }
  }
}
