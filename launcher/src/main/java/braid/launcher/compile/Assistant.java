package braid.launcher.compile;

import braid.MimeBundle;
import braid.launcher.cell.MagicName;
import java.util.Optional;
import java.util.stream.Collectors;
import jdk.jshell.SourceCodeAnalysis.Suggestion;

/// Answers an editor's questions from the front's own compiler: no rank is asked.
public final class Assistant {
  private static final String INDENT = "    ";
  private final CellCompiler compiler;

  public Assistant(CellCompiler compiler) {
    this.compiler = compiler;
  }

  public Completions complete(String source, int cursor) {
    int lineStart = source.lastIndexOf('\n', Math.max(0, cursor - 1)) + 1;
    var line = source.substring(Math.min(lineStart, cursor), cursor);
    if (line.startsWith("%") && !line.contains(" ")) {
      return new Completions(
          MagicName.spellings().stream().filter(m -> m.startsWith(line)).toList(),
          lineStart,
          cursor);
    }
    int start = startOfSnippet(source, cursor);
    var anchor = new int[1];
    var suggestions =
        compiler.analysis().completionSuggestions(source.substring(start), cursor - start, anchor);
    var replacements =
        suggestions.stream()
            .sorted((a, b) -> Boolean.compare(b.matchesType(), a.matchesType()))
            .map(Suggestion::continuation)
            .distinct()
            .toList();
    return new Completions(replacements, start + anchor[0], cursor);
  }

  public Optional<MimeBundle> inspect(String source, int cursor) {
    int start = startOfSnippet(source, cursor);
    var code = source.substring(start);
    int at = cursor - start;
    // Documentation is found at the end of a class's name, and of a method's only inside its
    // bracket: look from the end of the name, then as if the bracket had been opened.
    while (at < code.length() && Character.isJavaIdentifierPart(code.charAt(at))) {
      at++;
    }
    var docs = compiler.analysis().documentation(code, at, true);
    if (docs.isEmpty()) {
      docs = compiler.analysis().documentation(code.substring(0, at) + "(", at + 1, true);
    }
    if (docs.isEmpty()) {
      return Optional.empty();
    }
    var text =
        docs.stream()
            .map(
                d ->
                    d.javadoc() == null
                        ? d.signature()
                        : d.signature() + "\n" + d.javadoc().indent(4).stripTrailing())
            .collect(Collectors.joining("\n\n"));
    return Optional.of(MimeBundle.text(text));
  }

  public Completeness completeness(String source) {
    var rest = source.lines().filter(l -> !l.startsWith("%")).collect(Collectors.joining("\n"));
    while (true) {
      var info = compiler.analysis().analyzeCompletion(rest);
      switch (info.completeness()) {
        case EMPTY -> {
          return new Completeness(Completeness.Status.COMPLETE, "");
        }
        case UNKNOWN -> {
          return new Completeness(Completeness.Status.INVALID, "");
        }
        case DEFINITELY_INCOMPLETE, CONSIDERED_INCOMPLETE -> {
          return new Completeness(Completeness.Status.INCOMPLETE, indent(rest));
        }
        case COMPLETE, COMPLETE_WITH_SEMI -> rest = info.remaining();
      }
    }
  }

  /// One step per bracket that is still open.
  private static String indent(String source) {
    long open =
        source.chars().filter(c -> c == '{' || c == '(').count()
            - source.chars().filter(c -> c == '}' || c == ')').count();
    return INDENT.repeat((int) Math.max(0, open));
  }

  private int startOfSnippet(String source, int cursor) {
    int start = 0;
    while (true) {
      while (start < cursor && source.charAt(start) == '%') {
        int end = source.indexOf('\n', start);
        start = end < 0 || end >= cursor ? cursor : end + 1;
      }
      var info = compiler.analysis().analyzeCompletion(source.substring(start));
      var remaining = info.remaining() == null ? "" : info.remaining();
      int next = source.length() - remaining.length();
      if (!info.completeness().isComplete() || next >= cursor || next <= start) {
        return start;
      }
      start = next;
    }
  }
}
