package braid.launcher.compile;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Source position of each snippet: JShell numbers snippets (`#12`), users see cell 3, line 2.
/// Programs are known by the names of their classes.
public final class Origins {
  /// Origin of a snippet: its cell, its first line in the cell (from 1), and the cell's text.
  public record Origin(String cell, int firstLine, String cellSource) {
    public String place(int snippetLine) {
      return cell + ", line " + line(snippetLine);
    }

    public int line(int snippetLine) {
      return firstLine + snippetLine - 1;
    }

    /// Returns the cell's text around a line, which is marked.
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
  private final Set<String> unassigned = ConcurrentHashMap.newKeySet();
  private Optional<Origin> running = Optional.empty();

  /// Sets the origin of the next snippet: its id is known only after it ran, but its stack is
  /// mapped before.
  public void expect(Origin origin) {
    running = Optional.of(origin);
  }

  /// First line of the snippet that is running or ran last.
  public Optional<Integer> runningLine() {
    return running.map(Origin::firstLine);
  }

  /// Records whether a declaration gave its variable a value.
  public void declared(String variable, boolean assigned) {
    if (assigned) {
      unassigned.remove(variable);
    } else {
      unassigned.add(variable);
    }
  }

  /// Returns true if the declaration of a variable failed, so that it has no value.
  public boolean isUnassigned(String variable) {
    return unassigned.contains(variable);
  }

  public void put(String snippetId, Origin origin) {
    bySnippet.put(snippetId, origin);
  }

  public Optional<Origin> ofSnippet(String id) {
    return Optional.ofNullable(bySnippet.get(id));
  }

  /// Returns the origin of a stack frame that JShell has mapped to a snippet, or of a program.
  public Optional<Origin> of(StackTraceElement frame) {
    var file = frame.getFileName();
    return file != null && file.startsWith("#")
        ? Optional.ofNullable(bySnippet.get(file.substring(1))).or(() -> running)
        : ofSnippet(frame.getClassName().replaceFirst("\\$.*", ""));
  }
}
