package braid.launcher.cli.doctor;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.stream.Collectors;

/// All combinations on one screen: a line for each pattern, a column for each method, in a cell
/// whether it is there. What transports and memory a "yes" has, and why it has no others, is said
/// once below, for most cells have the same; so are the reasons of holes, by number. Collectives by
/// themselves follow, those that are alike in one line.
final class AbilityTable {
  private static final String YES = "yes";
  private static final String HOLE = "–";
  private static final int INDENT = 2;

  /// Transports × kinds of memory that have one answer.
  private record Box(
      SequencedSet<String> transports, SequencedSet<String> memories, Answer answer) {}

  /// @param reason why not; empty where it is supported
  private record Answer(boolean supported, String engine, String reason) {}

  private final String backend;
  private final int columns;
  private final List<Ability> overlaps;
  private final List<Ability> collectives;

  /// What a "yes" means, by the mark that stands for it.
  private final SequencedMap<List<Box>, String> marks = new LinkedHashMap<>();

  private final List<String> notes = new ArrayList<>();

  AbilityTable(String backend, int columns, List<Ability> overlaps, List<Ability> collectives) {
    this.backend = backend;
    this.columns = columns;
    this.overlaps = overlaps;
    this.collectives = collectives;
    var meanings = new LinkedHashSet<List<Box>>();
    for (var all : List.of(overlaps, collectives)) {
      for (var ways : cells(all).values()) {
        ways.values().stream()
            .filter(AbilityTable::any)
            .map(AbilityTable::boxes)
            .forEach(meanings::add);
      }
    }
    int number = 0;
    for (var meaning : meanings) {
      marks.put(meaning, meanings.size() == 1 ? YES : YES + "-" + (char) ('a' + number++));
    }
  }

  List<String> lines() {
    var lines = new ArrayList<String>();
    lines.add("What can be overlapped, on the %s backend:".formatted(backend));
    lines.addAll(matrix());
    if (!collectives.isEmpty()) {
      lines.add("Collectives by themselves:");
      lines.addAll(alike());
    }
    lines.add("Where:");
    marks.forEach((boxes, mark) -> lines.addAll(meaning(mark, boxes)));
    for (int note = 0; note < notes.size(); note++) {
      lines.addAll(wrapped("%d  ".formatted(note + 1), notes.get(note)));
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
    var widths = new ArrayList<Integer>();
    for (int column = 0; column < head.size(); column++) {
      int at = column;
      widths.add(table.stream().mapToInt(row -> row.get(at).length()).max().orElse(0));
    }
    return table.stream()
        .map(
            row -> {
              var line = new StringBuilder();
              for (int column = 0; column < row.size(); column++) {
                var text = row.get(column);
                line.append(" ".repeat(INDENT)).append(text);
                line.append(" ".repeat(widths.get(column) - text.length()));
              }
              return line.toString().stripTrailing();
            })
        .toList();
  }

  /// Collectives by what is to be said of them; few have a note in common, so it stands beside
  /// them.
  private List<String> alike() {
    record Said(String mark, List<String> notes) {}
    var alike = new LinkedHashMap<Said, List<String>>();
    cells(collectives)
        .forEach(
            (task, ways) -> {
              var abilities = ways.getOrDefault(Ability.NO_WAY, List.of());
              alike
                  .computeIfAbsent(
                      new Said(mark(abilities), reasons(abilities)), _ -> new ArrayList<>())
                  .add(task);
            });
    var lines = new ArrayList<String>();
    alike.forEach(
        (said, tasks) -> {
          var names = String.join(", ", tasks);
          lines.addAll(
              wrapped(
                  said.mark + "  ",
                  said.notes.isEmpty() ? names : names + ": " + String.join("; ", said.notes)));
        });
    return lines;
  }

  /// "yes 2": the mark, and the number of what there is to know.
  private String cell(List<Ability> abilities) {
    var text = new StringBuilder(mark(abilities));
    reasons(abilities).forEach(note -> text.append(' ').append(number(note)));
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

  private int number(String note) {
    if (!notes.contains(note)) {
      notes.add(note);
    }
    return notes.indexOf(note) + 1;
  }

  private List<String> meaning(String mark, List<Box> boxes) {
    var lines = new ArrayList<String>();
    for (var box : boxes) {
      var answer = box.answer;
      var first = lines.isEmpty() ? mark + "  " : " ".repeat(mark.length() + 2);
      var over = String.join(", ", box.transports);
      var in = String.join(", ", box.memories) + " memory";
      lines.addAll(
          wrapped(
              first,
              answer.supported
                  ? "over %s in %s: %s".formatted(over, in, answer.engine)
                  : "not over %s in %s: %s".formatted(over, in, answer.reason)));
    }
    return lines;
  }

  /// What is supported first. Kinds of memory with one answer are put together, then transports.
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

  /// The text in lines no longer than the screen is wide, under each other after `first`.
  private List<String> wrapped(String first, String text) {
    var indent = " ".repeat(INDENT + first.length());
    var lines = new ArrayList<String>();
    var line = new StringBuilder(" ".repeat(INDENT)).append(first);
    boolean empty = true;
    for (var word : text.split(" ", -1)) {
      if (!empty && line.length() + 1 + word.length() > columns) {
        lines.add(line.toString());
        line = new StringBuilder(indent);
        empty = true;
      }
      line.append(empty ? "" : " ").append(word);
      empty = false;
    }
    lines.add(line.toString());
    return lines;
  }
}
