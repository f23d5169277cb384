package braid.launcher.compile;

import braid.launcher.cell.Cell;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.StandardJavaFileManager;
import javax.tools.StandardLocation;
import jdk.jshell.DeclarationSnippet;
import jdk.jshell.Diag;
import jdk.jshell.JShell;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.VarSnippet;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;

/// The session's only compiler: JShell, with its running done elsewhere.
public final class CellCompiler implements AutoCloseable {
  /// A part of a cell: one snippet, or one line of magic. `firstLine` counts from 1 in the cell.
  public sealed interface Piece {
    int firstLine();

    /// `shown` is whether its value is the cell's result: the last piece, unless it ends with a
    /// semicolon.
    record Java(String source, int firstLine, boolean shown) implements Piece {}

    record Magic(String line, int firstLine) implements Piece {}
  }

  private static final int KEPT_VALUES = 8;

  /// From here on a cell is noticeably slower than in a new session.
  private static final int MANY_SNIPPETS = 2_000;

  private static final Pattern VALUE = Pattern.compile("\\$\\d+");

  private final Deque<VarSnippet> values = new ArrayDeque<>();
  private final Set<String> used = new HashSet<>();
  private final Turns turns = new Turns();
  private final JShell shell;
  private final SourceCodeAnalysis analysis;
  private int compiled;
  private final List<StandardJavaFileManager> files = new ArrayList<>();
  private long evalNanos;
  private long splitNanos;

  public CellCompiler(ExecutionControl control) {
    var provider =
        new ExecutionControlProvider() {
          @Override
          public String name() {
            return "braid";
          }

          @Override
          public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
            return turns.around(control);
          }
        };
    shell =
        JShell.builder()
            .executionEngine(provider, Map.of())
            .compilerOptions("-Xlint:none")
            .fileManager(this::withOurClasses)
            .build();
    analysis = shell.sourceCodeAnalysis();
  }

  /// The class path of this JVM, whatever the environment says. Not as an option of the compiler:
  /// that would stand above all that is added later.
  private StandardJavaFileManager withOurClasses(StandardJavaFileManager manager) {
    files.add(manager);
    var paths = System.getProperty("java.class.path").split(File.pathSeparator, -1);
    try {
      manager.setLocationFromPaths(
          StandardLocation.CLASS_PATH, Arrays.stream(paths).map(Path::of).toList());
    } catch (IOException e) {
      throw new UncheckedIOException("the class path could not be set", e);
    }
    return manager;
  }

  public SourceCodeAnalysis analysis() {
    return analysis;
  }

  public JShell shell() {
    return shell;
  }

  /// Asks something of the analysis or the shell, in turn with cells that are compiled.
  public <T> T ask(Supplier<T> question) {
    return turns.take(question);
  }

  public List<SnippetEvent> eval(String source) {
    long start = System.nanoTime();
    try {
      return turns.take(
          () -> {
            VALUE.matcher(source).results().forEach(name -> used.add(name.group()));
            var events = shell.eval(source);
            events.stream().map(SnippetEvent::snippet).forEach(this::forgetOldValues);
            compiled += events.size();
            return events;
          });
    } finally {
      evalNanos += System.nanoTime() - start;
    }
  }

  /// The number of snippets compiled so far. JShell lists all their classes, and imports each
  /// declaration that stands, whenever it compiles.
  public int compiled() {
    return compiled;
  }

  /// A note for the user where the number of compiled snippets has passed another 2,000.
  public static Optional<String> growth(int before, int after) {
    return before / MANY_SNIPPETS == after / MANY_SNIPPETS
        ? Optional.empty()
        : Optional.of(
            "note: this session has compiled %d statements; a later one takes about 0.015 ms longer for each of them, 0.04 ms for each declaration; %%restart begins anew"
                .formatted(after / MANY_SNIPPETS * MANY_SNIPPETS));
  }

  /// JShell keeps the value of every expression in a variable of its own, `$7`, which every later
  /// compilation then has to import and every rank to hold. Only the newest are kept, and those
  /// that some cell named.
  private void forgetOldValues(Snippet snippet) {
    if (!(snippet instanceof VarSnippet value)
        || value.subKind() != Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND) {
      return;
    }
    values.addLast(value);
    if (values.size() > KEPT_VALUES) {
      var oldest = values.removeFirst();
      if (shell.status(oldest).isActive() && !used.contains(oldest.name())) {
        var _ = shell.drop(oldest);
      }
    }
  }

  /// For how long it has evaluated so far; that includes running.
  public long evalNanos() {
    return evalNanos;
  }

  /// For how long it has split cells so far.
  public long splitNanos() {
    return splitNanos;
  }

  /// Splits a cell. Everything is split before anything runs, so that a cell cut off in the middle
  /// does not half run.
  ///
  /// @throws CompileError if the last part is not complete
  public List<Piece> split(Cell cell) throws CompileError {
    long start = System.nanoTime();
    try {
      return new CellSplitter(cell, this::analyse).pieces();
    } catch (StackOverflowError e) {
      throw CompileError.tooDeep(cell);
    } finally {
      splitNanos += System.nanoTime() - start;
    }
  }

  private SourceCodeAnalysis.CompletionInfo analyse(String source) {
    return turns.take(() -> analysis.analyzeCompletion(source));
  }

  /// Whether a snippet is an expression; JShell keeps the value of one that is not just a name in a
  /// variable.
  public static boolean hasResult(Snippet snippet) {
    return snippet.kind() == Snippet.Kind.EXPRESSION
        || snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
  }

  /// Why a snippet does not stand: it was rejected, or it declares a variable of a type that nobody
  /// knows, which JShell would let pass.
  public Optional<CompileError> errors(Cell cell, Piece.Java piece, SnippetEvent event) {
    return switch (event.status()) {
      case REJECTED -> {
        var diagnostics = shell.diagnostics(event.snippet()).filter(Diag::isError).toList();
        yield Optional.of(CompileError.of(cell, piece, diagnostics, Locale.getDefault()));
      }
      case RECOVERABLE_NOT_DEFINED ->
          Optional.of(CompileError.unresolved(cell, piece, unresolved(event)));
      default -> Optional.empty();
    };
  }

  /// What a declaration that stands still lacks before it can be used: it may refer to later cells.
  public Optional<String> lacks(SnippetEvent event) {
    return event.status() == Snippet.Status.RECOVERABLE_DEFINED
        ? Optional.of(unresolved(event))
        : Optional.empty();
  }

  private String unresolved(SnippetEvent event) {
    return event.snippet() instanceof DeclarationSnippet declaration
        ? shell.unresolvedDependencies(declaration).collect(Collectors.joining(", "))
        : "";
  }

  /// Closes the jars too, which JShell leaves open. A compilation that still runs ends before.
  @Override
  public void close() {
    shell.close();
    turns.whenFree(this::closeFiles);
  }

  private void closeFiles() {
    for (var manager : files) {
      try {
        manager.close();
      } catch (IOException e) {
        throw new UncheckedIOException("the jars of the class path could not be closed", e);
      }
    }
  }
}
