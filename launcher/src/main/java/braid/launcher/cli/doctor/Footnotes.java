package braid.launcher.cli.doctor;

import java.util.ArrayList;
import java.util.List;

/// Remarks of a table by number, and all its lines no longer than the screen is wide.
final class Footnotes {
  private static final int INDENT = 2;

  private final int columns;
  private final List<String> notes = new ArrayList<>();

  Footnotes(int columns) {
    this.columns = columns;
  }

  /// The number of that note, which is the next one where it is new.
  int number(String note) {
    if (!notes.contains(note)) {
      notes.add(note);
    }
    return notes.indexOf(note) + 1;
  }

  List<String> lines() {
    var lines = new ArrayList<String>();
    for (int note = 0; note < notes.size(); note++) {
      lines.addAll(wrapped("%d  ".formatted(note + 1), notes.get(note)));
    }
    return lines;
  }

  /// The text under each other after `first`.
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

  /// Rows of cells, those of a column under each other.
  static List<String> grid(List<List<String>> table) {
    var widths = new ArrayList<Integer>();
    for (int column = 0; column < table.getFirst().size(); column++) {
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
}
