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
  private int at;
  private int line = 1;
  private int counted;

  CellSplitter(Cell cell, Function<String, CompletionInfo> analysis) {
    this.cell = cell;
    this.analysis = analysis;
    source = cell.source();
  }

  List<Piece> pieces() throws CompileError {
    while (skipBlank(source.length())) {
      if (source.charAt(at) == '%') {
        int end = source.indexOf('\n', at);
        end = end < 0 ? source.length() : end;
        pieces.add(new Piece.Magic(source.substring(at, end).strip(), line()));
        at = end;
      } else {
        // A magic line ends the Java code before it, even if that is incomplete.
        java(nextMagic(source, at));
      }
    }
    return pieces;
  }

  /// Splits the Java code up to the limit.
  private void java(int limit) throws CompileError {
    var ends = new StatementEnds(source, at, limit);
    while (skipBlank(limit) && source.charAt(at) != '%') {
      snippet(ends, limit);
    }
  }

  private void snippet(StatementEnds ends, int limit) throws CompileError {
    int windowEnds = FIRST_WINDOW_ENDS;
    int end = ends.after(at, windowEnds);
    var info = analysis.apply(source.substring(at, end));
    while (end < limit
        && !(info.completeness() == Completeness.COMPLETE && !info.remaining().isEmpty())) {
      windowEnds *= 2;
      end = ends.after(at, windowEnds);
      info = analysis.apply(source.substring(at, end));
    }
    var window = source.substring(at, end);
    switch (info.completeness()) {
      case EMPTY -> at = limit;
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
    at += written.length();
    // If JShell leaves no remainder, only comments follow.
    boolean last = at == source.length();
    pieces.add(new Piece.Java(code, firstLine, last && !written.strip().endsWith(";")));
  }

  private boolean skipBlank(int limit) {
    while (at < limit && Character.isWhitespace(source.charAt(at))) {
      at++;
    }
    return at < limit;
  }

  private int line() {
    for (; counted < at; counted++) {
      if (source.charAt(counted) == '\n') {
        line++;
      }
    }
    return line;
  }

  private static int nextMagic(String source, int from) {
    for (int at = source.indexOf("\n%", from); at >= 0; at = source.indexOf("\n%", at + 1)) {
      if (at + 2 < source.length()
          && (Character.isLetter(source.charAt(at + 2)) || source.charAt(at + 2) == '%')) {
        return at + 1;
      }
    }
    return source.length();
  }
}
