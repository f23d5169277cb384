package braid.launcher.editing;

import braid.launcher.cell.MagicName;
import braid.launcher.compile.CellCompiler;
import braid.launcher.compile.Origins;
import braid.model.MimeBundle;
import java.util.Optional;

/// Answers an editor's requests with the front's compiler, without the ranks.
public final class Assistant {
  private static final String INDENT = "    ";

  private final CellCompiler compiler;
  private final Origins origins;
  private final MagicCompletion magics;

  public Assistant(CellCompiler compiler, Origins origins, int ranks) {
    this.compiler = compiler;
    this.origins = origins;
    magics = new MagicCompletion(ranks);
  }

  public Completions complete(String source, int cursor) {
    var line = source.substring(source.lastIndexOf('\n', cursor - 1) + 1, cursor);
    return isMagic(line)
        ? magics.complete(line, cursor)
        : compiler.ask(() -> new JavaCompletion(compiler.analysis()).complete(source, cursor));
  }

  /// @param detail 0 for a short text, 1 for everything
  public Optional<MimeBundle> inspect(String source, int cursor, int detail) {
    int start = source.lastIndexOf('\n', cursor - 1) + 1;
    int end = source.indexOf('\n', cursor);
    var line = source.substring(start, end < 0 ? source.length() : end);
    if (line.startsWith("%") && (isMagic(source.substring(start, cursor)) || cursor == start)) {
      return MagicName.explain(line.split("\\s+", 2)[0]).map(MimeBundle::text);
    }
    return compiler.ask(() -> new Inspection(compiler, origins).at(source, cursor, detail > 0));
  }

  /// Returns true for a magic line, except `%time`, which is followed by code.
  private static boolean isMagic(String line) {
    return line.startsWith("%") && !line.startsWith("%time ");
  }

  public Completeness completeness(String source) {
    return compiler.ask(() -> completenessOf(CellText.withoutMagics(source)));
  }

  private Completeness completenessOf(String java) {
    var rest = java;
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

  /// Returns one indentation step per open bracket.
  private static String indent(String source) {
    return INDENT.repeat(ScannedCode.of(source).open());
  }
}
