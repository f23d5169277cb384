package braid.launcher.editing;

import braid.launcher.cell.MagicName;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.Origins;
import braid.model.MimeBundle;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/// Answers an editor's requests with the front's compiler, without the ranks.
public final class Assistant {
  private static final Pattern FRONT = Pattern.compile("(?:\\s*%%.*\\R)*\\s*%%front\\b");
  private static final String INDENT = "    ";

  /// Declarations that a kind of cells sees.
  public record Scope(CellCompiler compiler, Origins origins) {}

  private final Scope ranks;
  private final Supplier<Scope> front;
  private final MagicCompletion magics;

  /// @param front returns the scope of `%%front` cells
  public Assistant(CellCompiler compiler, Origins origins, Supplier<Scope> front, int ranks) {
    this.ranks = new Scope(compiler, origins);
    this.front = front;
    magics = new MagicCompletion(ranks);
  }

  private Scope scope(String source) {
    return FRONT.matcher(source).lookingAt() ? front.get() : ranks;
  }

  public Completions complete(String source, int cursor) {
    var line = source.substring(source.lastIndexOf('\n', cursor - 1) + 1, cursor);
    if (isMagic(line)) {
      return magics.complete(line, cursor);
    }
    var compiler = scope(source).compiler();
    return compiler.ask(
        () -> new JavaCompletion(compiler.analysis(), compiler::type).complete(source, cursor));
  }

  /// @param detail 0 for a short text, 1 for everything
  public Optional<MimeBundle> inspect(String source, int cursor, int detail) {
    int start = source.lastIndexOf('\n', cursor - 1) + 1;
    int end = source.indexOf('\n', cursor);
    var line = source.substring(start, end < 0 ? source.length() : end);
    if (line.startsWith("%") && (isMagic(source.substring(start, cursor)) || cursor == start)) {
      return MagicName.explain(line.split("\\s+", 2)[0]).map(MimeBundle::text);
    }
    var scope = scope(source);
    return scope
        .compiler()
        .ask(
            () -> new Inspection(scope.compiler(), scope.origins()).at(source, cursor, detail > 0));
  }

  /// Returns true for a magic line, except `%time`, which is followed by code.
  private static boolean isMagic(String line) {
    return line.startsWith("%") && !line.startsWith("%time ");
  }

  public Completeness completeness(String source) {
    return ranks.compiler().ask(() -> completenessOf(CellText.withoutMagics(source)));
  }

  private Completeness completenessOf(String java) {
    var rest = java;
    while (true) {
      var info = ranks.compiler().analysis().analyzeCompletion(rest);
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

  /// Returns one indentation step per open bracket.
  private static String indent(String source) {
    return INDENT.repeat(ScannedCode.of(source).open());
  }
}
