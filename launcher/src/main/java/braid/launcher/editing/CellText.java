package braid.launcher.editing;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import jdk.jshell.SourceCodeAnalysis;

/// A cell up to the cursor: the complete snippets, and the one being written. Magic lines are
/// blanked, so positions stay the same.
record CellText(List<String> before, String current) {
  private static final String TIME = "%time ";
  private static final String MODIFIERS =
      "(?:(?:public|private|protected|static|final|abstract|sealed|non-sealed|synchronized)\\s+|@[\\w.]+\\s+)*";
  private static final Pattern IMPORT =
      Pattern.compile("import\\s+([\\w.$]+)\\.([\\w$]+)\\s*;\\s*");
  private static final Pattern TYPE =
      Pattern.compile(
          MODIFIERS + "(?:class|record|enum|@?interface)\\s+[\\w$]+[\\s<({].*", Pattern.DOTALL);
  private static final Pattern METHOD =
      Pattern.compile(
          MODIFIERS
              + "(?:<[^(){};]*>\\s*)?(?!new\\b|return\\b|else\\b)[\\w.$]+(?:<[^(){};]*>)?[\\[\\]\\s]*\\s[\\w$]+\\s*\\([^(){};]*\\)\\s*(?:throws\\s+[\\w.,\\s]+)?\\{.*",
          Pattern.DOTALL);

  static CellText of(String source, int cursor, SourceCodeAnalysis analysis) {
    var rest = withoutMagics(source.substring(0, cursor));
    var before = new ArrayList<String>();
    while (true) {
      var info = analysis.analyzeCompletion(rest);
      var remaining = info.remaining();
      if (!info.completeness().isComplete()
          || remaining == null
          || remaining.isBlank()
          || remaining.length() >= rest.length()) {
        return new CellText(before, rest);
      }
      before.add(info.source());
      rest = remaining;
    }
  }

  /// Blanks magic lines. Of a `%time` line, the timed code stays.
  static String withoutMagics(String source) {
    return source
        .lines()
        .map(CellText::withoutMagic)
        .collect(Collectors.joining("\n", "", source.endsWith("\n") ? "\n" : ""));
  }

  private static String withoutMagic(String line) {
    if (!line.startsWith("%")) {
      return line;
    }
    return line.startsWith(TIME)
        ? " ".repeat(TIME.length()) + line.substring(TIME.length())
        : " ".repeat(line.length());
  }

  /// Joins the cell into one text that the compiler can analyze without running it: declarations of
  /// members first, then statements in a block that ends with the current snippet. Imported names
  /// are qualified, because a block cannot import. JShell could classify each snippet, but would
  /// then treat every type it was asked about as declared.
  String joined() {
    var members = new StringBuilder("class $Cell {} ");
    var block = new StringBuilder("{ ");
    Map<String, String> imported = new HashMap<>();
    for (var snippet : before) {
      var code = ScannedCode.of(snippet).code().strip();
      var name = IMPORT.matcher(code);
      if (name.matches()) {
        imported.put(name.group(2), name.group(1) + "." + name.group(2));
      } else if (TYPE.matcher(code).matches() || METHOD.matcher(code).matches()) {
        members.append(snippet).append('\n');
      } else if (!code.startsWith("import ")) {
        block.append(snippet).append(";\n");
      }
    }
    block.append(current);
    var all = members.append(block).toString();
    for (var name : imported.entrySet()) {
      var alone = Pattern.compile("(?<![\\w.$])" + Pattern.quote(name.getKey()) + "(?![\\w$])");
      all = alone.matcher(all).replaceAll(Matcher.quoteReplacement(name.getValue()));
    }
    return all;
  }
}
