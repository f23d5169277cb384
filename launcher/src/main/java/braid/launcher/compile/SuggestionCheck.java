package braid.launcher.compile;

import com.sun.source.util.JavacTask;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import jdk.jshell.ImportSnippet;
import jdk.jshell.JShell;
import jdk.jshell.MethodSnippet;
import jdk.jshell.Snippet;
import jdk.jshell.TypeDeclSnippet;
import org.jspecify.annotations.Nullable;

/// Compiles suggestions against the session's declarations, without running or declaring anything:
/// what does not compile is not suggested.
///
/// All suggestions for an error of a cell are compiled at once. Each is a class of its own, which
/// inherits the session's variables, methods and types from one base class:
///
/// ```
/// class $Session { static int splitCount; static int halved(int n) { … } … }
/// class $Try3 extends $Session { void run() throws Throwable { halved(splitCount); } }
/// ```
final class SuggestionCheck {
  /// Names shown as a remedy; if more are equally close, none of them is likely to be meant.
  private static final int MOST_SHOWN = 3;

  private static final String BASE = "$Session";
  private static final Pattern MODIFIERS =
      Pattern.compile("^(?:(?:public|private|protected|static|final)\\s+)+");
  private static final List<String> OPTIONS =
      List.of("-proc:none", "-Xlint:none", "-Xmaxerrs", "100000");

  /// An error of a class: its position in the snippet, and the compiler's code for it.
  private record Found(long position, String code) {}

  private static final class Unit extends SimpleJavaFileObject {
    private final String prefix;
    private final String code;
    private final Set<Found> errors = new HashSet<>();

    /// @param prefix text before the snippet
    /// @param rest text from the snippet on
    Unit(String className, String prefix, String rest) {
      super(URI.create("string:///" + className + ".java"), Kind.SOURCE);
      this.prefix = prefix;
      code = prefix + rest;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return code;
    }
  }

  private final @Nullable JShell shell;
  private final StandardJavaFileManager files;
  private final List<String> options;
  private final String program;

  private SuggestionCheck(
      @Nullable JShell shell, StandardJavaFileManager files, List<String> options, String program) {
    this.shell = shell;
    this.files = files;
    this.options = options;
    this.program = program;
  }

  /// Returns a check of a session's snippets.
  static SuggestionCheck ofSession(JShell shell, StandardJavaFileManager files) {
    return new SuggestionCheck(shell, files, OPTIONS, "");
  }

  /// Returns a check of a program, which is compiled whole, once for each suggestion.
  ///
  /// @param options the compiler's options for the program
  /// @param name its file's name without `.java`
  static SuggestionCheck ofProgram(
      StandardJavaFileManager files, List<String> options, String name) {
    return new SuggestionCheck(
        null, files, Stream.concat(options.stream(), OPTIONS.stream()).toList(), name);
  }

  /// Returns those of the rewrites that remove the error at a position of the snippet and add none
  /// before their reach.
  List<Rewrite> compiling(String source, long position, List<Rewrite> rewrites) {
    if (rewrites.isEmpty()) {
      return List.of();
    }
    var sources = new ArrayList<>(List.of(source));
    rewrites.forEach(each -> sources.add(each.applied(source)));
    var units = shell == null ? programs(sources) : snippets(sources, shell);
    var before = units.getFirst().errors;
    return IntStream.range(0, rewrites.size())
        .filter(i -> isBetter(rewrites.get(i), position, before, units.get(i + 1).errors))
        .mapToObj(rewrites::get)
        .toList();
  }

  private List<Unit> snippets(List<String> sources, JShell declaring) {
    var units = parsed(sources, imports(declaring));
    var all = new ArrayList<>(units);
    all.add(new Unit(BASE, imports(declaring), session(declaring)));
    run(all, JavacTask::analyze);
    return units;
  }

  private List<Unit> programs(List<String> sources) {
    var units = sources.stream().map(source -> new Unit(program, "", source)).toList();
    units.forEach(unit -> run(List.of(unit), JavacTask::analyze));
    return units;
  }

  List<Rewrite> compiling(Rejection rejection, List<Rewrite> rewrites) {
    return compiling(rejection.source(), rejection.position(), rewrites);
  }

  /// Returns the suggestions that compile; empty if there are none, or too many to be likely.
  Optional<String> suggested(Rejection rejection, List<Rewrite> rewrites) {
    // A name that can be written as it is, is likelier than one of another class.
    var found = compiling(rejection, rewrites);
    boolean asIs = found.stream().anyMatch(rewrite -> !rewrite.shown().contains("."));
    var written =
        found.stream()
            .filter(rewrite -> !asIs || !rewrite.shown().contains("."))
            .map(rewrite -> "`" + rewrite.shown() + "`")
            .distinct()
            .toList();
    return written.isEmpty() || written.size() > MOST_SHOWN
        ? Optional.empty()
        : Optional.of("did you mean " + joined(written) + "?");
  }

  /// Joins the first few.
  static String joined(List<String> all) {
    var names = all.subList(0, Math.min(all.size(), MOST_SHOWN));
    return names.size() == 1
        ? names.getFirst()
        : String.join(", ", names.subList(0, names.size() - 1)) + " or " + names.getLast();
  }

  private static boolean isBetter(
      Rewrite rewrite, long position, Set<Found> before, Set<Found> after) {
    var known =
        before.stream()
            .map(error -> new Found(rewrite.moved(error.position), error.code))
            .collect(Collectors.toSet());
    return after.stream()
        .noneMatch(
            error ->
                error.position == rewrite.moved(position)
                    || (error.position < rewrite.moved(rewrite.reach()) && !known.contains(error)));
  }

  private interface Step {
    void of(JavacTask task) throws IOException;
  }

  private void run(List<Unit> units, Step step) {
    var task =
        ToolProvider.getSystemJavaCompiler()
            .getTask(null, files, SuggestionCheck::keep, options, null, units);
    try {
      if (task instanceof JavacTask javac) {
        step.of(javac);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("the suggestions could not be compiled", e);
    }
  }

  /// Returns each source as what it is: statements, an expression or declarations.
  private List<Unit> parsed(List<String> sources, String imports) {
    var forms =
        IntStream.range(0, sources.size())
            .mapToObj(i -> forms(i, sources.get(i), imports))
            .toList();
    run(forms.stream().flatMap(List::stream).toList(), JavacTask::parse);
    return forms.stream()
        .map(
            units ->
                units.stream()
                    .filter(unit -> unit.errors.isEmpty())
                    .findFirst()
                    .orElse(units.getFirst()))
        .toList();
  }

  private static List<Unit> forms(int number, String source, String imports) {
    var name = "$Try" + number;
    var head = "class " + name + " extends " + BASE + " { ";
    var run = imports + head + "void $run() throws Throwable { ";
    return source.stripLeading().startsWith("import ")
        ? List.of(new Unit(name, imports, source + "\n" + head + "}"))
        : List.of(
            new Unit(name, run, source + "\n;}}"),
            new Unit(name, run + "var $value = ", source + "\n;}}"),
            new Unit(name, imports + head, source + "\n}"));
  }

  private static void keep(Diagnostic<? extends JavaFileObject> diagnostic) {
    if (diagnostic.getKind() == Diagnostic.Kind.ERROR
        && diagnostic.getSource() instanceof Unit unit
        && diagnostic.getPosition() >= unit.prefix.length()) {
      unit.errors.add(
          new Found(
              diagnostic.getPosition() - unit.prefix.length(),
              Objects.requireNonNullElse(diagnostic.getCode(), "")));
    }
  }

  private static String imports(JShell shell) {
    return shell
            .imports()
            .map(ImportSnippet::source)
            .map(String::strip)
            .collect(Collectors.joining(" "))
        + " ";
  }

  private static String session(JShell shell) {
    var fields =
        shell
            .variables()
            .filter(variable -> isUsable(variable, shell))
            .map(variable -> variable.typeName() + " " + variable.name() + ";");
    var others =
        Stream.concat(
            shell.methods().filter(method -> isUsable(method, shell)).map(MethodSnippet::source),
            shell.types().filter(type -> isUsable(type, shell)).map(TypeDeclSnippet::source));
    return Stream.concat(fields, others)
        .map(source -> "static " + MODIFIERS.matcher(source.strip()).replaceFirst(""))
        .collect(Collectors.joining("\n", "class " + BASE + " {\n", "\n}"));
  }

  private static boolean isUsable(Snippet snippet, JShell shell) {
    return shell.status(snippet).isActive() && shell.status(snippet).isDefined();
  }
}
