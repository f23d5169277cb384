package braid.launcher.soak;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellOutput;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.notebook.run.StopRequest;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.MimeBundle;
import java.time.Duration;
import java.util.Optional;

/// A session in this process, whose cells run as in `braid run`.
final class HeadlessVictim implements Victim {
  private final SessionOptions options;
  private Session session;
  private StopRequest stop = new StopRequest();

  HeadlessVictim(SessionOptions options) {
    this.options = options;
    session = Session.start(options);
  }

  /// Forwards a cell's output.
  private record Forwarding(VictimCell cell) implements CellOutput {
    @Override
    public void stdout(String text) {
      cell.append(text);
    }

    @Override
    public void stderr(String text) {
      cell.append(text);
    }

    @Override
    public void display(MimeBundle bundle, String displayId) {
      cell.append(bundle.text());
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {
      cell.append(bundle.text());
    }
  }

  @Override
  public String name() {
    return "headless";
  }

  @Override
  public long front() {
    return ProcessHandle.current().pid();
  }

  @Override
  public boolean hasLimits() {
    return true;
  }

  @Override
  public VictimCell begin(String code, Optional<Duration> limit) {
    stop = new StopRequest();
    var request = stop;
    var cell = new VictimCell();
    var attempt = new CellAttempt(session, new Cell("the cell", code), new Forwarding(cell));
    Thread.ofPlatform()
        .daemon()
        .name("soak-headless")
        .start(() -> run(attempt, new TimeLimits(limit, Optional.empty()), request, cell));
    return cell;
  }

  private static void run(
      CellAttempt attempt, TimeLimits limits, StopRequest stop, VictimCell cell) {
    try {
      var outcome = attempt.run(limits, stop);
      outcome.result().ifPresent(result -> cell.append(result.text()));
      var failure = outcome.failure();
      cell.end(
          failure.isEmpty(),
          failure.map(f -> f.message() + "\n" + String.join("\n", f.traceback())).orElse(""));
    } catch (RuntimeException | Error e) {
      cell.end(false, "the session failed: " + e);
      throw e;
    }
  }

  @Override
  public void interrupt() {
    stop.request("stopped by the soak");
  }

  @Override
  public void renew() {
    session.close();
    session = Session.start(options);
  }

  @Override
  public void close() {
    session.close();
  }
}
