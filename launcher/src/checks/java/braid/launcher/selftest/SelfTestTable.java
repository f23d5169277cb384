package braid.launcher.selftest;

import braid.launcher.selftest.TestedConfiguration.Outcome;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.TreeMap;

/// All ways on a screen or two. Ways with the same result are grouped, part by part; each wrong one
/// has its own line.
public final class SelfTestTable {
  /// Ways that share all parts except those with several values.
  record Group(List<SequencedSet<String>> parts, Outcome outcome, String said, int cases) {
    Group without(int part) {
      var others = new ArrayList<>(parts);
      others.set(part, new LinkedHashSet<>());
      return new Group(others, outcome, said, 0);
    }
  }

  /// Order of grouping: first the parts that most ways have in common.
  private static final List<String> ORDER =
      List.of("dtype", "memory", "transport", "method", "what");

  private static final List<Outcome> SHOWN =
      List.of(Outcome.OK, Outcome.NOT_AVAILABLE, Outcome.NOT_RUN, Outcome.WRONG);

  private SelfTestTable() {}

  public static List<String> lines(List<TestedConfiguration> ways) {
    var byOutcome = new TreeMap<Outcome, List<String>>();
    for (var outcome : SHOWN) {
      var some = ways.stream().filter(way -> way.outcome() == outcome).toList();
      if (!some.isEmpty()) {
        byOutcome.put(outcome, lines(outcome, some));
      }
    }
    return SHOWN.stream().flatMap(o -> byOutcome.getOrDefault(o, List.of()).stream()).toList();
  }

  private static List<String> lines(Outcome outcome, List<TestedConfiguration> ways) {
    var lines = new ArrayList<String>();
    if (outcome == Outcome.WRONG) {
      ways.forEach(way -> lines.add("WRONG  %s: %s".formatted(way.words(), way.said())));
      return lines;
    }
    var table = new ArrayList<List<String>>();
    for (var group : grouped(ways)) {
      var cells = new ArrayList<String>();
      group.parts.forEach(part -> cells.add(String.join(" ", part)));
      cells.add(
          outcome == Outcome.OK
              ? "%d %s%s"
                  .formatted(
                      group.cases,
                      group.cases == 1 ? "case" : "cases",
                      group.said.isEmpty() ? "" : "; " + group.said)
              : group.said);
      table.add(cells);
    }
    for (var row : table) {
      var line = new StringBuilder("%-13s".formatted(outcome));
      for (int column = 0; column < row.size(); column++) {
        int index = column;
        int width = table.stream().mapToInt(other -> other.get(index).length()).max().orElse(0);
        line.append("  ").append(row.get(column));
        line.append(" ".repeat(width - row.get(column).length()));
      }
      lines.add(line.toString().stripTrailing());
    }
    return lines;
  }

  /// Returns all combinations of parts with one outcome together, so that few groups have every
  /// way.
  static List<Group> grouped(List<TestedConfiguration> ways) {
    var groups = new ArrayList<Group>();
    for (var way : ways) {
      var parts = new ArrayList<SequencedSet<String>>();
      way.parts().forEach(part -> parts.add(new LinkedHashSet<>(List.of(part))));
      groups.add(new Group(parts, way.outcome(), way.said(), way.cases()));
    }
    for (var name : ORDER) {
      merge(groups, TestedConfiguration.PARTS.indexOf(name));
    }
    return groups;
  }

  /// Merges groups that differ only in this part.
  private static void merge(List<Group> groups, int part) {
    var merged = new LinkedHashMap<Group, Group>();
    for (var group : groups) {
      merged.merge(
          group.without(part),
          group,
          (before, after) -> {
            var parts = new ArrayList<>(before.parts);
            var both = new LinkedHashSet<>(before.parts.get(part));
            both.addAll(after.parts.get(part));
            parts.set(part, both);
            return new Group(parts, before.outcome, before.said, before.cases + after.cases);
          });
    }
    groups.clear();
    groups.addAll(merged.values());
  }
}
