package braid.launcher.compile;

import braid.launcher.cell.Cell;
import braid.launcher.compile.CellCompiler.Piece;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import jdk.jshell.SourceCodeAnalysis.Completeness;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;

/// Splits a cell into snippets and magic lines in linear time. JShell decides where a snippet ends,
/// but reads its whole input to find the first one. So it gets only a window: enough to see one
/// token after the snippet, which is all that the end can depend on (`else`, `catch`). Windows end
/// where statements may end; a window that is too short is doubled, and the last one is the whole
/// rest.
final class CellSplitter {
  /// Statement ends of the first window: one statement and the beginning of the next.
  private static final int FIRST_WINDOW_ENDS = 2;

  private final Function<String, CompletionInfo> analysis;
  private final Cell cell;
  private final String source;
  private final List<Piece> pieces = new ArrayList<>();
  private int position;
  private int line = 1;
  private int counted;

  CellSplitter(Cell cell, Function<String, CompletionInfo> analysis) {
    this.cell = cell;
    this.analysis = analysis;
    source = cell.source();
  }

  List<Piece> pieces() throws CompileError {
    while (skipBlank(source.length())) {
      if (source.charAt(position) == '%') {
        int end = source.indexOf('\n', position);
        end = end < 0 ? source.length() : end;
        pieces.add(new Piece.Magic(source.substring(position, end).strip(), line()));
        position = end;
      } else {
        // A magic line ends the Java code before it, even if that is incomplete.
        java(nextMagic(source, position));
      }
    }
    return pieces;
  }

  /// Splits the Java code up to the limit.
  private void java(int limit) throws CompileError {
    var ends = new StatementEnds(source, position, limit);
    while (skipBlank(limit) && source.charAt(position) != '%') {
      snippet(ends, limit);
    }
  }

  private void snippet(StatementEnds ends, int limit) throws CompileError {
    int windowEnds = FIRST_WINDOW_ENDS;
    int end = ends.after(position, windowEnds);
    var info = analysis.apply(source.substring(position, end));
    while (end < limit
        && !(info.completeness() == Completeness.COMPLETE && !info.remaining().isEmpty())) {
      windowEnds *= 2;
      end = ends.after(position, windowEnds);
      info = analysis.apply(source.substring(position, end));
    }
    var window = source.substring(position, end);
    switch (info.completeness()) {
      case EMPTY -> position = limit;
      case DEFINITELY_INCOMPLETE, CONSIDERED_INCOMPLETE ->
          throw CompileError.incomplete(cell, line(), window);
      case UNKNOWN -> add(window, window);
      case COMPLETE, COMPLETE_WITH_SEMI ->
          add(window.substring(0, window.length() - info.remaining().length()), info.source());
    }
  }

  /// @param written the snippet as in the cell
  /// @param code the same in JShell's form
  private void add(String written, String code) {
    int firstLine = line();
    position += written.length();
    // If JShell leaves no remainder, only comments follow.
    boolean last = position == source.length();
    pieces.add(new Piece.Java(code, firstLine, last && !written.strip().endsWith(";")));
  }

  private boolean skipBlank(int limit) {
    while (position < limit && Character.isWhitespace(source.charAt(position))) {
      position++;
    }
    return position < limit;
  }

  private int line() {
    for (; counted < position; counted++) {
      if (source.charAt(counted) == '\n') {
        line++;
      }
    }
    return line;
  }

  private static int nextMagic(String source, int from) {
    for (int position = source.indexOf("\n%", from);
        position >= 0;
        position = source.indexOf("\n%", position + 1)) {
      if (position + 2 < source.length()
          && (Character.isLetter(source.charAt(position + 2))
              || source.charAt(position + 2) == '%')) {
        return position + 1;
      }
    }
    return source.length();
  }
}
