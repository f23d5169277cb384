package braid.launcher.cli.doctor;

import java.util.ArrayList;
import java.util.List;

/// Numbered notes of a table, and line wrapping to the width of the screen.
final class Footnotes {
  private static final int INDENT = 2;

  private final int columns;
  private final List<String> notes = new ArrayList<>();

  Footnotes(int columns) {
    this.columns = columns;
  }

  /// Returns the number of a note; a new note gets the next one.
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

  /// Wraps text after `first`, with continuation lines indented.
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

  /// Formats rows with aligned columns.
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
