package braid.schedule.check;

import java.util.AbstractList;
import java.util.List;

/// Mistakes of a schedule, one line each. As text, a schedule without mistakes says how much was
/// checked.
final class Findings extends AbstractList<String> {
  /// Iterations in flight that a check compares.
  private static final int ITERATIONS = 2;

  private final List<String> lines;
  private final int ranks;

  Findings(List<String> lines, int ranks) {
    this.lines = lines;
    this.ranks = ranks;
  }

  @Override
  public String get(int index) {
    return lines.get(index);
  }

  @Override
  public int size() {
    return lines.size();
  }

  @Override
  public String toString() {
    return lines.isEmpty()
        ? "nothing found in %d %s × %d iterations"
            .formatted(ranks, ranks == 1 ? "rank" : "ranks", ITERATIONS)
        : String.join("\n", lines);
  }
}
