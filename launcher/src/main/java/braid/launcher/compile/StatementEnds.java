package braid.launcher.compile;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;

/// Positions in a text after which a statement may end: after each `;` and `}` outside brackets,
/// literals and comments. Text that is not Java may have any number of them.
final class StatementEnds {
  private final String text;
  private final int limit;
  private final Deque<Integer> ends = new ArrayDeque<>();
  private int read;
  private int depth;

  StatementEnds(String text, int from, int limit) {
    this.text = text;
    this.limit = limit;
    read = from;
  }

  /// Returns the position after `count` ends from `from`; the limit if there are fewer. `from` must
  /// not decrease between calls.
  int after(int from, int count) {
    while (!ends.isEmpty() && ends.getFirst() <= from) {
      ends.removeFirst();
    }
    while (ends.size() < count && read < limit) {
      readOn(from);
    }
    if (ends.size() < count) {
      return limit;
    }
    Iterator<Integer> found = ends.iterator();
    for (int i = 1; i < count; i++) {
      found.next();
    }
    return found.next();
  }

  private void readOn(int from) {
    char c = text.charAt(read);
    switch (c) {
      case '(', '[', '{' -> depth++;
      case ')', ']', '}' -> depth = Math.max(0, depth - 1);
      default -> {}
    }
    read = isLiteralOrComment(c, read) ? afterLiteralOrComment(c, read) : read + 1;
    if (depth == 0 && (c == ';' || c == '}') && read > from) {
      ends.addLast(read);
    }
  }

  private boolean isLiteralOrComment(char c, int index) {
    return c == '"'
        || c == '\''
        || (c == '/' && (text.startsWith("//", index) || text.startsWith("/*", index)));
  }

  private int afterLiteralOrComment(char c, int index) {
    if (c == '/') {
      return text.charAt(index + 1) == '/' ? after("\n", index + 2) : after("*/", index + 2);
    }
    if (text.startsWith("\"\"\"", index)) {
      return afterQuotes(index + 3, "\"\"\"");
    }
    return afterQuotes(index + 1, String.valueOf(c));
  }

  private int after(String end, int from) {
    int found = text.indexOf(end, from);
    return found < 0 || found >= limit ? limit : found + end.length();
  }

  /// Ends a literal. One on a single line ends with its line, even if its quote is missing.
  private int afterQuotes(int from, String quotes) {
    int index = from;
    while (index < limit && !text.startsWith(quotes, index)) {
      if (quotes.length() == 1 && text.charAt(index) == '\n') {
        return index;
      }
      index += text.charAt(index) == '\\' ? 2 : 1;
    }
    return Math.min(limit, index + quotes.length());
  }
}
