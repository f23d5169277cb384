package braid.launcher.cli.doctor;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/// Tables of abilities that fit on one screen: a row per task and a column per way to do it. A cell
/// has a mark if the task is supported that way, and a dash if not. Many cells have the same
/// explanation, so it is printed once: of a mark below the table, and of a note, which cells and
/// marks refer to by its number, after all tables.
final class AbilityGrid {
  private static final String YES = "yes";
  private static final String UNSUPPORTED = "–";
  private static final int INDENT = 2;

  private final int columns;
  private final List<String> notes = new ArrayList<>();

  /// Marks that an earlier table has explained.
  private final Map<List<String>, String> explained = new HashMap<>();

  /// @param columns width of the screen, in characters
  AbilityGrid(int columns) {
    this.columns = columns;
  }

  /// Returns the lines of one table, and of those of its marks that no table has explained yet.
  ///
  /// @param way returns the column of an ability
  /// @param meaning returns the texts that explain a cell in which something is supported
  List<String> lines(
      List<Ability> abilities,
      Function<Ability, String> way,
      Function<List<Ability>, List<String>> meaning) {
    var cells = cells(abilities, way);
    var marks = marks(cells, meaning);
    var ways = abilities.stream().map(way).distinct().toList();
    var table = new ArrayList<List<String>>();
    table.add(row("", ways));
    cells.forEach(
        (task, ofTask) ->
            table.add(
                row(
                    task,
                    ways.stream()
                        .map(each -> ofTask.getOrDefault(each, List.of()))
                        .map(
                            cell ->
                                marks.getOrDefault(
                                        any(cell) ? meaning.apply(cell) : List.of(), UNSUPPORTED)
                                    + numbers(cell))
                        .toList())));
    var lines = new ArrayList<>(aligned(table));
    marks.forEach(
        (texts, mark) -> {
          if (!mark.equals(explained.put(texts, mark))) {
            lines.addAll(legend(mark + "  ", texts, marks.keySet()));
          }
        });
    return lines;
  }

  /// Returns the lines that explain a mark. A text of several marks becomes a note.
  private List<String> legend(String mark, List<String> texts, Collection<List<String>> all) {
    var lines = new ArrayList<String>();
    var references = new ArrayList<String>();
    var first = mark;
    for (var text : texts) {
      if (all.stream().filter(each -> each.contains(text)).count() > 1) {
        references.add(Integer.toString(number(text)));
      } else {
        lines.addAll(wrapped(first, text));
        first = " ".repeat(mark.length());
      }
    }
    if (!references.isEmpty()) {
      lines.addAll(wrapped(first, "notes " + String.join(", ", references)));
    }
    return lines;
  }

  /// Returns the abilities of each cell, by task and way.
  static SequencedMap<String, SequencedMap<String, List<Ability>>> cells(
      List<Ability> abilities, Function<Ability, String> way) {
    return abilities.stream()
        .collect(
            Collectors.groupingBy(
                Ability::task,
                LinkedHashMap::new,
                Collectors.groupingBy(way, LinkedHashMap::new, Collectors.toList())));
  }

  static boolean any(Collection<Ability> abilities) {
    return abilities.stream().anyMatch(Ability::supported);
  }

  private static SequencedMap<List<String>, String> marks(
      SequencedMap<String, SequencedMap<String, List<Ability>>> cells,
      Function<List<Ability>, List<String>> meaning) {
    var meanings =
        cells.values().stream()
            .flatMap(ways -> ways.values().stream())
            .filter(AbilityGrid::any)
            .map(meaning)
            .collect(Collectors.toCollection(LinkedHashSet::new));
    var marks = new LinkedHashMap<List<String>, String>();
    for (var each : meanings) {
      marks.put(each, meanings.size() == 1 ? YES : YES + "-" + (char) ('a' + marks.size()));
    }
    return marks;
  }

  private static List<String> row(String task, List<String> cells) {
    var row = new ArrayList<>(List.of(task));
    row.addAll(cells);
    return row;
  }

  /// Returns the numbers of a cell's notes: its limits if it is supported, else the reasons why
  /// not.
  private String numbers(List<Ability> cell) {
    boolean any = any(cell);
    return cell.stream()
        .filter(ability -> ability.supported() == any && !ability.reason().isEmpty())
        .map(Ability::reason)
        .distinct()
        .map(note -> " " + number(note))
        .collect(Collectors.joining());
  }

  private int number(String note) {
    if (!notes.contains(note)) {
      notes.add(note);
    }
    return notes.indexOf(note) + 1;
  }

  /// Returns the notes of all tables so far, by number.
  List<String> notes() {
    var lines = new ArrayList<String>();
    for (int note = 0; note < notes.size(); note++) {
      lines.addAll(wrapped("%d  ".formatted(note + 1), notes.get(note)));
    }
    return lines;
  }

  /// Returns `first` and the text beside it, in lines that fit the screen.
  List<String> wrapped(String first, String text) {
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

  static List<String> aligned(List<List<String>> table) {
    var widths = new ArrayList<Integer>();
    for (int column = 0; column < table.getFirst().size(); column++) {
      int index = column;
      widths.add(table.stream().mapToInt(row -> row.get(index).length()).max().orElse(0));
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
}
