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

  private boolean isLiteralOrComment(char c, int at) {
    return c == '"'
        || c == '\''
        || (c == '/' && (text.startsWith("//", at) || text.startsWith("/*", at)));
  }

  private int afterLiteralOrComment(char c, int at) {
    if (c == '/') {
      return text.charAt(at + 1) == '/' ? after("\n", at + 2) : after("*/", at + 2);
    }
    if (text.startsWith("\"\"\"", at)) {
      return afterQuotes(at + 3, "\"\"\"");
    }
    return afterQuotes(at + 1, String.valueOf(c));
  }

  private int after(String end, int from) {
    int found = text.indexOf(end, from);
    return found < 0 || found >= limit ? limit : found + end.length();
  }

  /// Ends a literal. One on a single line ends with its line, even if its quote is missing.
  private int afterQuotes(int from, String quotes) {
    int at = from;
    while (at < limit && !text.startsWith(quotes, at)) {
      if (quotes.length() == 1 && text.charAt(at) == '\n') {
        return at;
      }
      at += text.charAt(at) == '\\' ? 2 : 1;
    }
    return Math.min(limit, at + quotes.length());
  }
}
