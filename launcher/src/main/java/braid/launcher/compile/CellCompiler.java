package braid.launcher.compile;

import braid.launcher.RankClassPath;
import braid.launcher.cell.Cell;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
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
import java.util.stream.Stream;
import javax.tools.JavaFileObject.Kind;
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

/// The session's only compiler: JShell, with execution delegated to the ranks.
public final class CellCompiler implements AutoCloseable {
  /// A part of a cell: one snippet or one magic line. `firstLine` counts from 1 in the cell.
  public sealed interface Piece {
    int firstLine();

    /// A Java snippet. `shown` is true if its value is the cell's result: for the last piece,
    /// unless it ends with a semicolon.
    record Java(String source, int firstLine, boolean shown) implements Piece {}

    record Magic(String line, int firstLine) implements Piece {}
  }

  private static final int KEPT_VALUES = 8;

  /// Number of snippets after which a cell is noticeably slower than in a new session.
  private static final int MANY_SNIPPETS = 2_000;

  /// Classes of the JDK's base module.
  private static final Path JDK = Path.of(URI.create("jrt:/java.base"));

  private static final String CLASS = ".class";

  private static final Pattern VALUE = Pattern.compile("\\$\\d+");

  private final Deque<VarSnippet> values = new ArrayDeque<>();
  private final Set<String> used = new HashSet<>();
  private final CompilerLock lock = new CompilerLock();
  private final JShell shell;
  private int compiled;
  private final List<StandardJavaFileManager> files = new ArrayList<>();

  public CellCompiler(ExecutionControl control) {
    var provider =
        new ExecutionControlProvider() {
          @Override
          public String name() {
            return "braid";
          }

          @Override
          public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
            return lock.releasedWhileRunning(control);
          }
        };
    shell =
        JShell.builder()
            .executionEngine(provider, Map.of())
            .compilerOptions("-Xlint:none")
            .fileManager(this::withOurClasses)
            .build();
  }

  /// Sets the class path of the ranks. It is not a compiler option, because that would override
  /// everything added later.
  private StandardJavaFileManager withOurClasses(StandardJavaFileManager manager) {
    files.add(manager);
    try {
      manager.setLocationFromPaths(StandardLocation.CLASS_PATH, RankClassPath.entries());
    } catch (IOException e) {
      throw new UncheckedIOException("the class path could not be set", e);
    }
    return manager;
  }

  /// Returns the analysis of sources. The first call starts to list all classes in the background,
  /// about a second of processor time. So a session does not make it while it starts.
  public SourceCodeAnalysis analysis() {
    return lock.hold(shell::sourceCodeAnalysis);
  }

  public JShell shell() {
    return shell;
  }

  /// Runs a query of the analysis or the shell, mutually exclusive with compilation.
  public <T> T ask(Supplier<T> question) {
    return lock.hold(question);
  }

  public List<SnippetEvent> eval(String source) {
    return lock.hold(
        () -> {
          VALUE.matcher(source).results().forEach(name -> used.add(name.group()));
          var events = shell.eval(source);
          events.stream().map(SnippetEvent::snippet).forEach(this::dropOldValues);
          compiled += events.size();
          return events;
        });
  }

  /// Number of snippets compiled so far. At each compilation JShell lists all their classes and
  /// imports every active declaration.
  public int compiled() {
    return compiled;
  }

  /// Returns a note for the user if the number of compiled snippets has passed another 2,000.
  public static Optional<String> growth(int before, int after) {
    return before / MANY_SNIPPETS == after / MANY_SNIPPETS
        ? Optional.empty()
        : Optional.of(
            "note: this session has compiled %d statements; a later one takes about 0.015 ms longer for each of them, 0.04 ms for each declaration; %%restart starts a new session"
                .formatted(after / MANY_SNIPPETS * MANY_SNIPPETS));
  }

  /// Drops old expression values. JShell stores each value in a variable, `$7`, which every later
  /// compilation imports and every rank holds. Only the newest and those that a cell named are
  /// kept.
  private void dropOldValues(Snippet snippet) {
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

  /// Splits a cell. The whole cell is split before anything runs, so that a truncated cell does not
  /// run partially.
  ///
  /// @throws CompileError if the last part is not complete
  public List<Piece> split(Cell cell) throws CompileError {
    try {
      return new CellSplitter(cell, this::analyse).pieces();
    } catch (StackOverflowError e) {
      throw CompileError.tooDeep(cell);
    }
  }

  private SourceCodeAnalysis.CompletionInfo analyse(String source) {
    return lock.hold(() -> shell.sourceCodeAnalysis().analyzeCompletion(source));
  }

  /// Returns true if a snippet is an expression; unless it is a plain name, JShell stores its value
  /// in a variable.
  public static boolean hasResult(Snippet snippet) {
    return snippet.kind() == Snippet.Kind.EXPRESSION
        || snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
  }

  /// Returns why a snippet is invalid: it was rejected, or it declares a variable of an unknown
  /// type, which JShell would accept.
  public Optional<CompileError> errors(
      Cell cell, Piece.Java piece, SnippetEvent event, OtherCells otherCells) {
    return switch (event.status()) {
      case REJECTED -> {
        var diagnostics = shell.diagnostics(event.snippet()).filter(Diag::isError).toList();
        yield Optional.of(
            ask(
                () ->
                    CompileError.of(
                        cell, piece, diagnostics, Locale.getDefault(), hints(otherCells))));
      }
      case RECOVERABLE_NOT_DEFINED ->
          Optional.of(
              ask(
                  () ->
                      CompileError.unresolved(
                          cell, piece, dependencies(event), hints(otherCells))));
      default -> Optional.empty();
    };
  }

  /// Returns the names that a valid declaration still lacks before it can be used: it may refer to
  /// later cells.
  public Optional<String> lacks(SnippetEvent event, OtherCells otherCells) {
    if (event.status() != Snippet.Status.RECOVERABLE_DEFINED) {
      return Optional.empty();
    }
    return Optional.of(
        ask(
            () -> {
              var hints = hints(otherCells);
              return dependencies(event).stream()
                  .map(
                      name ->
                          name
                              + hints
                                  .forUnresolved(name, event.snippet().source())
                                  .map(h -> " (" + h + ")")
                                  .orElse(""))
                  .collect(Collectors.joining(", "));
            }));
  }

  private List<String> dependencies(SnippetEvent event) {
    return event.snippet() instanceof DeclarationSnippet declaration
        ? shell.unresolvedDependencies(declaration).toList()
        : List.of();
  }

  /// Returns true if a cell of this compiler has declared a name.
  public boolean declares(String name) {
    return ask(
        () ->
            Stream.of(shell.variables(), shell.methods(), shell.types())
                .flatMap(snippets -> snippets)
                .anyMatch(snippet -> snippet.name().equals(name)));
  }

  /// Returns a remedy for a line that is no Java, such as a magic of another kernel.
  public static Optional<String> remedy(String line) {
    return Hints.forIncomplete(line);
  }

  /// Returns the class that a name means in a cell, by its imports.
  public Optional<Class<?>> type(String name) {
    return ask(() -> names().type(name));
  }

  private Hints hints(OtherCells otherCells) {
    return new Hints(names(), SuggestionCheck.ofSession(shell, files.getFirst()), otherCells);
  }

  /// Returns the hints for a program with the imports that this compiler has evaluated.
  Hints hints(SuggestionCheck ofProgram) {
    return new Hints(names(), ofProgram, OtherCells.front(_ -> false));
  }

  private SessionNames names() {
    return new SessionNames(shell, this::classesOf);
  }

  /// Returns the binary names of the classes of a package: on the class path, or of the JDK.
  private List<String> classesOf(String packageName) {
    var names = new ArrayList<String>();
    var ofJdk = JDK.resolve(packageName.replace('.', '/'));
    if (Files.isDirectory(ofJdk)) {
      try (var entries = Files.list(ofJdk)) {
        entries
            .map(path -> String.valueOf(path.getFileName()))
            .filter(file -> file.endsWith(CLASS))
            .map(file -> packageName + "." + file.substring(0, file.length() - CLASS.length()))
            .forEach(names::add);
      } catch (IOException e) {
        throw new UncheckedIOException("the classes of the JDK could not be listed", e);
      }
    }
    for (var manager : files) {
      try {
        manager
            .list(StandardLocation.CLASS_PATH, packageName, Set.of(Kind.CLASS), false)
            .forEach(file -> names.add(manager.inferBinaryName(StandardLocation.CLASS_PATH, file)));
      } catch (IOException e) {
        throw new UncheckedIOException("the class path could not be read", e);
      }
    }
    return names.stream().distinct().toList();
  }

  /// Closes the shell and the jars, which JShell leaves open. A running compilation ends before.
  @Override
  public void close() {
    shell.close();
    lock.whenFree(this::closeFiles);
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
