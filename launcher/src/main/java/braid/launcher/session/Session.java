package braid.launcher.session;

import braid.MimeBundle;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/// The heart: runs cells on all ranks and merges what they say. It knows JShell, magics, ranks and
/// outputs, and nothing of Jupyter.
public final class Session implements AutoCloseable {
  /// Text that may stand between `start` and `end` of the source instead of what stands there.
  public record Completions(List<String> replacements, int start, int end) {}

  /// Whether a cell can be run as it stands; `indent` is what the next line should begin with.
  public record Completeness(Status status, String indent) {
    public enum Status {
      COMPLETE,
      INCOMPLETE,
      INVALID
    }
  }

  private Session() {}

  /// Starts the ranks and waits until each is ready.
  public static Session start(SessionOptions options) {
    return new Session();
  }

  /// Runs one cell to its end. Cells are run one at a time; a second call waits.
  public Outcome run(Cell cell, CellOutput output) {
    return new Outcome(Optional.empty(), Optional.empty(), Duration.ZERO);
  }

  /// Stops the running cell on every rank, from another thread. Without one it does nothing.
  public void interrupt() {}

  /// Stops all ranks and starts them anew; nothing that cells declared is left.
  public void restart() {}

  public int ranks() {
    return 0;
  }

  public Completions complete(String source, int cursor) {
    return new Completions(List.of(), cursor, cursor);
  }

  public Optional<MimeBundle> inspect(String source, int cursor) {
    return Optional.empty();
  }

  public Completeness completeness(String source) {
    return new Completeness(Completeness.Status.COMPLETE, "");
  }

  /// Ends every rank and frees what the session holds. Twice is harmless.
  @Override
  public void close() {}
}
