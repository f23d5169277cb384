package braid.launcher.compile;

import braid.launcher.Nearest;
import braid.launcher.compile.PublicApi.Name;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import jdk.jshell.Diag;
import jdk.jshell.ImportSnippet;
import jdk.jshell.JShell;
import jdk.jshell.MethodSnippet;
import jdk.jshell.TypeDeclSnippet;
import jdk.jshell.VarSnippet;
import org.jspecify.annotations.Nullable;

/// Remedies for compiler errors: the closest name, the kind of cells that has a name, or the call
/// that replaces a constructor.
final class Hints {
  /// Names shown as a remedy; if more are equally close, none of them is likely to be meant.
  private static final int MOST_SHOWN = 3;

  private static final Pattern SYMBOL =
      Pattern.compile("symbol:\\s+(variable|method|class)\\s+([\\w$]+)");
  private static final Pattern LOCATION =
      Pattern.compile("location:\\s+(\\w+|variable \\S+ of type)\\s+([\\w$]+(?:\\.[\\w$]+)+)");

  private static final Pattern UNRESOLVED = Pattern.compile("(variable|method|class) ([\\w$]+).*");
  private static final Pattern NEW =
      Pattern.compile("new\\s+([\\w$]+(?:\\s*\\.\\s*[\\w$]+)*)\\s*[(<]");

  /// The compiler's code for an argument of another type.
  private static final String WRONG_TYPE = "compiler.err.prob.found.req";

  private final JShell shell;
  private final Function<String, List<String>> classesOf;
  private final OtherCells other;
  private @Nullable PublicApi imported;

  /// @param classesOf returns the binary names of the classes of a package
  Hints(JShell shell, Function<String, List<String>> classesOf, OtherCells other) {
    this.shell = shell;
    this.other = other;
    this.classesOf = classesOf;
  }

  /// Returns the API that the session's imports make usable.
  private PublicApi api() {
    var known = imported;
    if (known == null) {
      var imports = shell.imports().toList();
      known =
          new PublicApi(
              imports.stream()
                  .filter(each -> !each.isStatic())
                  .map(ImportSnippet::fullname)
                  .toList(),
              imports.stream()
                  .filter(ImportSnippet::isStatic)
                  .map(ImportSnippet::fullname)
                  .toList(),
              classesOf);
      imported = known;
    }
    return known;
  }

  /// Returns a remedy for a name that the compiler does not know; empty if none is close.
  Optional<String> forUnknownName(Diag diagnostic, String source) {
    // The root bundle is English; that of Locale.ENGLISH falls back to the default locale.
    var message = diagnostic.getMessage(Locale.ROOT);
    var symbol = SYMBOL.matcher(message);
    if (!symbol.find()) {
      return Optional.empty();
    }
    var kind = symbol.group(1);
    var name = symbol.group(2);
    if (!isQualified(diagnostic, source)) {
      return unqualified(kind, name);
    }
    var location = LOCATION.matcher(message);
    if (!location.find()) {
      return Optional.empty();
    }
    var place = location.group(2);
    return location.group(1).equals("package")
        ? closest(name, new PublicApi(List.of(place + ".*"), List.of(), classesOf).types())
        : PublicApi.load(place).flatMap(type -> closest(name, PublicApi.members(type, kind)));
  }

  /// Returns true if the error is at a dot or a double colon, which the unknown name follows.
  private static boolean isQualified(Diag diagnostic, String source) {
    long at = diagnostic.getPosition();
    return at >= 0 && at < source.length() && ".:".indexOf(source.charAt((int) at)) >= 0;
  }

  /// Returns a remedy for a dependency that JShell could not resolve, such as `variable splts`.
  Optional<String> forUnresolved(String dependency) {
    var symbol = UNRESOLVED.matcher(dependency);
    return symbol.matches() ? unqualified(symbol.group(1), symbol.group(2)) : Optional.empty();
  }

  private Optional<String> unqualified(String kind, String name) {
    if (other.declares().test(name)) {
      return Optional.of(other.hint(name));
    }
    var names = new ArrayList<Name>();
    switch (kind) {
      case "variable" -> {
        names.addAll(own(shell.variables().map(VarSnippet::name)));
        names.addAll(own(shell.types().map(TypeDeclSnippet::name)));
        names.addAll(api().types());
        names.addAll(api().constants());
      }
      case "method" -> {
        names.addAll(own(shell.methods().map(MethodSnippet::name)));
        names.addAll(api().functions());
      }
      default -> {
        names.addAll(own(shell.types().map(TypeDeclSnippet::name)));
        names.addAll(api().types());
      }
    }
    return closest(name, names);
  }

  private static List<Name> own(Stream<String> names) {
    return names
        .filter(name -> !name.startsWith("$"))
        .map(name -> new Name(name, name))
        .distinct()
        .toList();
  }

  private static Optional<String> closest(String mistyped, List<Name> names) {
    var close = Nearest.close(mistyped, names.stream().map(Name::simple).distinct().toList());
    var found = names.stream().filter(name -> close.contains(name.simple())).toList();
    // A name that can be written as it is, is likelier than one of another class.
    boolean asIs = found.stream().anyMatch(name -> name.written().equals(name.simple()));
    var written =
        found.stream()
            .filter(name -> !asIs || name.written().equals(name.simple()))
            .map(name -> "`" + name.written() + "`")
            .distinct()
            .toList();
    return written.isEmpty() || written.size() > MOST_SHOWN
        ? Optional.empty()
        : Optional.of("did you mean " + joined(written) + "?");
  }

  /// Returns the message for a constructor that a cell cannot call, at the error's position or
  /// around it; empty if the class has a public one.
  Optional<String> forConstructor(Diag diagnostic, String source) {
    if (diagnostic.getPosition() < 0 || diagnostic.getPosition() > source.length()) {
      return Optional.empty();
    }
    int position = (int) diagnostic.getPosition();
    var called = NEW.matcher(source).region(position, source.length());
    if (!called.lookingAt()
        && !(WRONG_TYPE.equals(diagnostic.getCode()) && findAround(position, called, source))) {
      return Optional.empty();
    }
    var name = called.group(1).replaceAll("\\s", "");
    return api()
        .type(name)
        .or(() -> PublicApi.load(name))
        .filter(PublicApi::hasNoConstructor)
        .map(type -> name + " has no public constructor" + instead(type));
  }

  /// Finds the call of a constructor that has an argument at the position. The compiler complains
  /// about an argument if a private constructor has as many.
  private static boolean findAround(int position, Matcher called, String source) {
    called.region(0, position);
    int found = -1;
    while (called.find()) {
      int open = 0;
      for (int i = called.end(); i < position && open >= 0; i++) {
        open += source.charAt(i) == '(' ? 1 : source.charAt(i) == ')' ? -1 : 0;
      }
      found = open == 0 ? called.start() : found;
    }
    return found >= 0 && called.region(found, position).lookingAt();
  }

  private String instead(Class<?> type) {
    var factories = PublicApi.factories(type, this::variable);
    if (!factories.isEmpty()) {
      return ": begin with " + joined(factories);
    }
    var sources = api().sources(type);
    return sources.isEmpty() ? "" : ": one is returned by " + joined(sources);
  }

  /// Returns the session's variable of a type, if it has one.
  private Optional<String> variable(Class<?> type) {
    return shell
        .variables()
        .filter(
            variable ->
                variable.typeName().equals(type.getSimpleName())
                    || variable.typeName().equals(type.getCanonicalName()))
        .map(VarSnippet::name)
        .filter(name -> !name.startsWith("$"))
        .findFirst();
  }

  /// Joins the first few.
  private static String joined(List<String> all) {
    var names = all.subList(0, Math.min(all.size(), MOST_SHOWN));
    return names.size() == 1
        ? names.getFirst()
        : String.join(", ", names.subList(0, names.size() - 1)) + " or " + names.getLast();
  }
}
