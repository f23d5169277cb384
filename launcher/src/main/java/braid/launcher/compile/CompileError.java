package braid.launcher.compile;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import jdk.jshell.Diag;

/// Compiler errors of a cell, with the cell's own lines, in the format of javac.
public final class CompileError extends Exception {
  private static final long serialVersionUID = 1;

  private final transient List<String> lines;

  private CompileError(String message, List<String> lines) {
    super(message);
    this.lines = List.copyOf(lines);
  }

  public static CompileError incomplete(Cell cell, int line, String rest) {
    var first = rest.lines().findFirst().orElse("");
    var message =
        cell.name() + ", line " + line + ": incomplete code; is a bracket or a quote missing?";
    var lines = new ArrayList<>(List.of(message, "    " + first));
    Hints.forIncomplete(rest).ifPresent(hint -> lines.add("  " + hint));
    return new CompileError(message, lines);
  }

  static CompileError tooDeep(Cell cell) {
    var message =
        cell.name()
            + ": brackets or operators are nested too deeply for the compiler; split the expression";
    return new CompileError(message, List.of(message));
  }

  static CompileError unresolved(
      Cell cell, CellCompiler.Piece.Java piece, List<String> missing, Hints hints) {
    var message =
        "%s, line %d: error: cannot find %s"
            .formatted(cell.name(), piece.firstLine(), String.join(", ", missing));
    var lines = new ArrayList<String>();
    lines.add(message);
    lines.add("    " + piece.source().lines().findFirst().orElse(""));
    missing.forEach(
        name ->
            hints.forUnresolved(name, piece.source()).ifPresent(hint -> lines.add("  " + hint)));
    return new CompileError(message, lines);
  }

  static CompileError of(
      Cell cell,
      CellCompiler.Piece.Java piece,
      List<Diag> diagnostics,
      Locale locale,
      Hints hints) {
    var lines = new ArrayList<String>();
    var message = "";
    var hint = Optional.<String>empty();
    boolean isExplained = false;
    for (var diagnostic : diagnostics) {
      var constructor = hints.forConstructor(diagnostic, piece.source());
      var found =
          constructor.isPresent() ? Optional.<String>empty() : hints.of(diagnostic, piece.source());
      if (isExplained || (found.isPresent() && found.equals(hint))) {
        continue; // a consequence of the same mistake
      }
      hint = found;
      isExplained = hint.isPresent() && Rejection.isSyntax(diagnostic);
      int position = Math.clamp(diagnostic.getPosition(), 0, piece.source().length());
      int lineStart = piece.source().lastIndexOf('\n', Math.max(0, position - 1)) + 1;
      if (position == 0) {
        lineStart = 0;
      }
      int lineEnd = piece.source().indexOf('\n', position);
      int line =
          piece.firstLine()
              + (int) piece.source().substring(0, lineStart).chars().filter(c -> c == '\n').count();
      var messageLines =
          constructor.map(List::of).orElseGet(() -> diagnostic.getMessage(locale).lines().toList());
      var head =
          cell.name()
              + ", line "
              + line
              + ": error: "
              + (messageLines.isEmpty() ? "" : messageLines.getFirst());
      if (message.isEmpty()) {
        message = head;
      }
      lines.add(head);
      lines.add(
          "    "
              + piece
                  .source()
                  .substring(lineStart, lineEnd < 0 ? piece.source().length() : lineEnd));
      lines.add("    " + " ".repeat(Math.max(0, position - lineStart)) + "^");
      messageLines.stream()
          .skip(1)
          .filter(s -> !s.strip().equals("location: class"))
          .map(s -> "  " + s)
          .forEach(lines::add);
      hint.ifPresent(text -> lines.add("  " + text));
    }
    if (lines.isEmpty()) {
      message =
          cell.name() + ", line " + piece.firstLine() + ": error: the compiler gave no reason";
      lines.add(message);
    }
    return new CompileError(message, lines);
  }

  public CellFailure failure() {
    return new CellFailure(Cause.COMPILE, "CompileError", String.valueOf(getMessage()), lines);
  }
}
