package braid.export;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/// A file for another program.
///
/// @param text the file, which begins with the place of its measurement and what it leaves out
/// @param omitted what was measured and the program's format cannot express, and what it adds
public record Export(String text, List<String> omitted) {
  private static final int WIDTH = 100;

  public Export {
    omitted = List.copyOf(omitted);
  }

  /// Returns a file whose comments begin with `#`.
  static Export commented(MeasuredOn machine, String target, List<String> omitted, String body) {
    return new Export(comment(machine.header(target, omitted)) + "\n" + body, omitted);
  }

  /// Returns lines as comments, wrapped: some readers of these files take no more than 255
  /// characters.
  static String comment(List<String> lines) {
    return lines.stream()
        .flatMap(line -> wrapped(line).stream())
        .map(line -> "# " + line + "\n")
        .collect(Collectors.joining());
  }

  private static List<String> wrapped(String line) {
    var lines = new ArrayList<String>();
    var current = new StringBuilder();
    for (var word : line.split(" ", -1)) {
      if (!current.isEmpty() && current.length() + 1 + word.length() > WIDTH) {
        lines.add(current.toString());
        current.setLength(0);
        current.append("  ");
      } else if (!current.isEmpty()) {
        current.append(' ');
      }
      current.append(word);
    }
    lines.add(current.toString());
    return lines;
  }

  @Override
  public String toString() {
    return text;
  }
}
