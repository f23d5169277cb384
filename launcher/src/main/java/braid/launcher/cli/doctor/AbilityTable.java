package braid.launcher.cli.doctor;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.stream.Collectors;

/// All combinations on one screen: a line per pattern, a column per method, and in each cell
/// whether it is supported. Transports and memory of a "yes", and why others are missing, are
/// explained once below, because most cells have the same. The reasons of unsupported cells follow
/// by number, then collectives ([CollectiveGrid]).
final class AbilityTable {
  static final String YES = "yes";
  static final String HOLE = "–";

  /// Transports × kinds of memory with the same answer.
  private record Box(
      SequencedSet<String> transports, SequencedSet<String> memories, Answer answer) {}

  /// @param reason why not; empty if it is supported
  private record Answer(boolean supported, String engine, String reason) {}

  private final String backend;
  private final List<Ability> overlaps;
  private final List<Ability> collectives;

  /// Meaning of each mark of a "yes".
  private final SequencedMap<List<Box>, String> marks = new LinkedHashMap<>();

  private final Footnotes notes;

  AbilityTable(int columns, String backend, List<Ability> overlaps, List<Ability> collectives) {
    this.notes = new Footnotes(columns);
    this.backend = backend;
    this.overlaps = overlaps;
    this.collectives = collectives;
    var meanings = new LinkedHashSet<List<Box>>();
    for (var ways : cells(overlaps).values()) {
      ways.values().stream()
          .filter(AbilityTable::any)
          .map(AbilityTable::boxes)
          .forEach(meanings::add);
    }
    int number = 0;
    for (var meaning : meanings) {
      marks.put(meaning, meanings.size() == 1 ? YES : YES + "-" + (char) ('a' + number++));
    }
  }

  List<String> lines() {
    var lines = new ArrayList<String>();
    lines.add("Overlapped patterns on the %s backend:".formatted(backend));
    lines.addAll(matrix());
    marks.forEach((boxes, mark) -> lines.addAll(meaning(mark, boxes)));
    if (!collectives.isEmpty()) {
      lines.add("Collectives:");
      lines.addAll(new CollectiveGrid(collectives, notes).lines());
    }
    var footnotes = notes.lines();
    if (!footnotes.isEmpty()) {
      lines.add("Notes:");
      lines.addAll(footnotes);
    }
    return lines;
  }

  private List<String> matrix() {
    var ways = overlaps.stream().map(Ability::way).distinct().toList();
    var table = new ArrayList<List<String>>();
    var head = new ArrayList<>(List.of(""));
    head.addAll(ways);
    table.add(head);
    cells(overlaps)
        .forEach(
            (task, ofTask) -> {
              var row = new ArrayList<>(List.of(task));
              ways.forEach(way -> row.add(cell(ofTask.getOrDefault(way, List.of()))));
              table.add(row);
            });
    return Footnotes.grid(table);
  }

  /// Returns the text of a cell, "yes 2": the mark, and the numbers of its notes.
  private String cell(List<Ability> abilities) {
    var text = new StringBuilder(mark(abilities));
    reasons(abilities).forEach(note -> text.append(' ').append(notes.number(note)));
    return text.toString();
  }

  private String mark(List<Ability> abilities) {
    return any(abilities) ? marks.getOrDefault(boxes(abilities), YES) : HOLE;
  }

  private static List<String> reasons(List<Ability> abilities) {
    boolean any = any(abilities);
    return abilities.stream()
        .filter(ability -> ability.supported() == any && !ability.reason().isEmpty())
        .map(Ability::reason)
        .distinct()
        .toList();
  }

  private List<String> meaning(String mark, List<Box> boxes) {
    var lines = new ArrayList<String>();
    for (var box : boxes) {
      var answer = box.answer;
      var first = lines.isEmpty() ? mark + "  " : " ".repeat(mark.length() + 2);
      var over = String.join(", ", box.transports);
      var in = String.join(", ", box.memories) + " memory";
      lines.addAll(
          notes.wrapped(
              first,
              answer.supported
                  ? "over %s in %s: %s".formatted(over, in, answer.engine)
                  : "not over %s in %s: %s".formatted(over, in, answer.reason)));
    }
    return lines;
  }

  /// Groups abilities with the same answer, supported ones first: kinds of memory, then transports.
  private static List<Box> boxes(List<Ability> abilities) {
    record Over(String transport, Answer answer) {}
    record In(SequencedSet<String> memories, Answer answer) {}
    var memories = new LinkedHashMap<Over, SequencedSet<String>>();
    for (var ability : abilities) {
      var answer =
          new Answer(
              ability.supported(), ability.engine(), ability.supported() ? "" : ability.reason());
      memories
          .computeIfAbsent(new Over(ability.transport(), answer), _ -> new LinkedHashSet<>())
          .add(ability.memory());
    }
    var transports = new LinkedHashMap<In, SequencedSet<String>>();
    memories.forEach(
        (over, kinds) ->
            transports
                .computeIfAbsent(new In(kinds, over.answer), _ -> new LinkedHashSet<>())
                .add(over.transport));
    return transports.entrySet().stream()
        .map(e -> new Box(e.getValue(), e.getKey().memories, e.getKey().answer))
        .sorted((a, b) -> Boolean.compare(b.answer.supported, a.answer.supported))
        .toList();
  }

  private static boolean any(Collection<Ability> abilities) {
    return abilities.stream().anyMatch(Ability::supported);
  }

  private static SequencedMap<String, SequencedMap<String, List<Ability>>> cells(
      List<Ability> abilities) {
    return abilities.stream()
        .collect(
            Collectors.groupingBy(
                Ability::task,
                LinkedHashMap::new,
                Collectors.groupingBy(Ability::way, LinkedHashMap::new, Collectors.toList())));
  }
}
