package braid.launcher.notebook.parameters;

import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.Tree;
import com.sun.source.tree.VariableTree;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.Trees;
import java.util.ArrayList;

/// Source text of declarations: the value as written, and the comment.
final class DeclarationText {
  private final CompilationUnitTree unit;
  private final SourcePositions positions;
  private final String text;

  DeclarationText(CompilationUnitTree unit, Trees trees, String text) {
    this.unit = unit;
    this.positions = trees.getSourcePositions();
    this.text = text;
  }

  String value(VariableTree variable) {
    Tree value = variable.getInitializer();
    if (value == null) {
      return "";
    }
    int start = (int) positions.getStartPosition(unit, value);
    int end = (int) positions.getEndPosition(unit, value);
    return start < 0 || end < start
        ? value.toString()
        : text.substring(start, end).replaceAll("\\s*\\R\\s*", " ");
  }

  String comment(VariableTree variable) {
    int end = (int) positions.getEndPosition(unit, variable);
    int start = (int) positions.getStartPosition(unit, variable);
    if (end < 0 || start < 0) {
      return "";
    }
    int lineEnd = text.indexOf('\n', end);
    var behind = text.substring(end, lineEnd < 0 ? text.length() : lineEnd);
    int slashes = behind.indexOf("//");
    return slashes >= 0 ? behind.substring(slashes).replaceFirst("^/+", "").strip() : above(start);
  }

  /// Returns the comment lines directly above.
  private String above(int start) {
    var lines = text.substring(0, text.lastIndexOf('\n', start) + 1).lines().toList();
    var comment = new ArrayList<String>();
    for (int i = lines.size() - 1; i >= 0 && lines.get(i).strip().startsWith("//"); i--) {
      comment.addFirst(lines.get(i).strip().replaceFirst("^/+", "").strip());
    }
    return String.join(" ", comment);
  }
}
