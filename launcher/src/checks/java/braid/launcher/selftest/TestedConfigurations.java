package braid.launcher.selftest;

import braid.launcher.cell.CellOutput;
import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// Output of the self-test's cell: collects results of ways and forwards all other output.
public final class TestedConfigurations implements CellOutput {
  private final Consumer<TestedConfiguration> progress;
  private final Consumer<String> other;
  private final StringBuilder line = new StringBuilder();
  private final List<TestedConfiguration> ways = new ArrayList<>();
  private String running = "";

  /// Number of results so far, with those that did not arrive.
  private int results;

  /// @param progress receives each way
  /// @param other receives other output of ranks
  public TestedConfigurations(Consumer<TestedConfiguration> progress, Consumer<String> other) {
    this.progress = progress;
    this.other = other;
  }

  /// Returns the ways so far; complete once the cell is over.
  public synchronized List<TestedConfiguration> ways() {
    return List.copyOf(ways);
  }

  /// Returns the case that began last; empty if none did or its result is known.
  public synchronized String running() {
    return running;
  }

  @Override
  public synchronized void stdout(String text) {
    line.append(text);
    for (int end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
      var whole = line.substring(0, end);
      line.delete(0, end + 1);
      accept(whole);
    }
  }

  private void accept(String whole) {
    if (whole.startsWith(TestedConfiguration.BEGINS)) {
      running = whole.substring(TestedConfiguration.BEGINS.length()).strip();
      return;
    }
    TestedConfiguration.read(whole)
        .ifPresentOrElse(
            way -> {
              running = "";
              if (way.number() > results) {
                ways.add(TestedConfiguration.lost(results, way.number() - results));
              }
              results = way.number() + 1;
              ways.add(way);
              progress.accept(way);
            },
            () -> other.accept(whole + "\n"));
  }

  @Override
  public void stderr(String text) {
    other.accept(text);
  }

  /// Forwards displays without a name. Named ones, such as progress bars, repeat the rows.
  @Override
  public void display(MimeBundle bundle, String displayId) {
    if (displayId.isEmpty()) {
      other.accept(bundle.text() + "\n");
    }
  }
}
