package braid.schedule.check;

import java.util.AbstractList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;

/// Mistakes of a schedule, one line for each kind: the first place, and the number of others. As
/// text, a schedule without mistakes says how much was checked.
final class Findings extends AbstractList<String> {
  private final List<String> lines;
  private final int ranks;

  Findings(List<Finding> findings, int ranks) {
    var kinds =
        findings.stream()
            .collect(Collectors.groupingBy(Finding::kind, LinkedHashMap::new, Collectors.toList()));
    this.lines = kinds.values().stream().map(Findings::line).toList();
    this.ranks = ranks;
  }

  private static String line(List<Finding> kind) {
    var first = kind.getFirst();
    int others = kind.size() - 1;
    long otherRanks =
        kind.stream()
            .mapToInt(Finding::rank)
            .filter(rank -> rank != first.rank())
            .distinct()
            .count();
    if (others == 0) {
      return first.text();
    }
    var places =
        otherRanks == 0
            ? "at %d more %s of the rank".formatted(others, others == 1 ? "place" : "places")
            : otherRanks == others
                ? "on %d more %s".formatted(others, others == 1 ? "rank" : "ranks")
                : "at %d more places of %d ranks".formatted(others, otherRanks + 1);
    return "%s, and %s".formatted(first.text(), places);
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
            .formatted(ranks, ranks == 1 ? "rank" : "ranks", Order.ITERATIONS)
        : String.join("\n", lines);
  }
}
