package braid.launcher.compile;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/// Where each snippet was written: JShell speaks of snippet `#12`, people of cell 3, line 2.
public final class Origins {
  /// A snippet: its cell, the line of the cell it begins on (from 1), and the cell's text.
  public record Origin(String cell, int firstLine, String cellSource) {
    public String place(int snippetLine) {
      return cell + ", line " + line(snippetLine);
    }

    public int line(int snippetLine) {
      return firstLine + snippetLine - 1;
    }

    /// The cell's text around a line, which is marked.
    public List<String> excerpt(int snippetLine) {
      var lines = cellSource.lines().toList();
      int marked = line(snippetLine);
      var shown = new ArrayList<String>();
      for (int n = Math.max(1, marked - CONTEXT_LINES);
          n <= Math.min(lines.size(), marked + CONTEXT_LINES);
          n++) {
        shown.add("%s %3d  %s".formatted(n == marked ? "->" : "  ", n, lines.get(n - 1)));
      }
      return shown;
    }
  }

  private static final int CONTEXT_LINES = 2;

  private final Map<String, Origin> bySnippet = new ConcurrentHashMap<>();
  private Optional<Origin> running = Optional.empty();

  /// The snippet that runs next: its id is known only after it ran, but its stack is mapped before
  /// that.
  public void expect(Origin origin) {
    running = Optional.of(origin);
  }

  /// The line of the cell that the snippet which runs, or ran last, begins on.
  public Optional<Integer> runningLine() {
    return running.map(Origin::firstLine);
  }

  public void put(String snippetId, Origin origin) {
    bySnippet.put(snippetId, origin);
  }

  public Optional<Origin> ofSnippet(String id) {
    return Optional.ofNullable(bySnippet.get(id));
  }

  /// The origin of a stack frame that JShell has mapped to a snippet.
  public Optional<Origin> of(StackTraceElement frame) {
    var file = frame.getFileName();
    return file != null && file.startsWith("#")
        ? Optional.ofNullable(bySnippet.get(file.substring(1))).or(() -> running)
        : Optional.empty();
  }
}
