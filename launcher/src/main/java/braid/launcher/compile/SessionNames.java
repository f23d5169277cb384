package braid.launcher.compile;

import braid.launcher.compile.PublicApi.Name;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;
import jdk.jshell.ImportSnippet;
import jdk.jshell.JShell;
import jdk.jshell.MethodSnippet;
import jdk.jshell.Snippet;
import jdk.jshell.TypeDeclSnippet;
import jdk.jshell.VarSnippet;
import org.jspecify.annotations.Nullable;

/// The names that a cell may use: declared by cells, and imported.
final class SessionNames {
  private final JShell shell;
  private final Function<String, List<String>> classesOf;
  private @Nullable PublicApi imported;

  /// @param classesOf returns the binary names of the classes of a package
  SessionNames(JShell shell, Function<String, List<String>> classesOf) {
    this.shell = shell;
    this.classesOf = classesOf;
  }

  /// Returns the API that the session's imports make usable.
  PublicApi api() {
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

  /// Returns the class of a name, which is written as in a cell or in full.
  Optional<Class<?>> type(String name) {
    return api().type(name).or(() -> PublicApi.load(name));
  }

  /// Returns the classes of a package.
  List<Name> classes(String packageName) {
    return new PublicApi(List.of(packageName + ".*"), List.of(), classesOf).types();
  }

  /// Returns the full names of the classes with a simple name.
  List<String> importable(String name) {
    return PublicApi.named(name, classesOf);
  }

  List<Name> variables() {
    return usable(shell.variables());
  }

  List<Name> methods() {
    return usable(shell.methods());
  }

  List<Name> types() {
    return usable(shell.types());
  }

  private List<Name> usable(Stream<? extends Snippet> snippets) {
    return snippets
        .filter(snippet -> shell.status(snippet).isDefined())
        .map(
            snippet ->
                switch (snippet) {
                  case VarSnippet variable -> variable.name();
                  case MethodSnippet method -> method.name();
                  case TypeDeclSnippet type -> type.name();
                  default -> "$";
                })
        .filter(name -> !name.startsWith("$"))
        .map(name -> new Name(name, name))
        .distinct()
        .toList();
  }

  /// Returns true if a cell has declared the name but its declaration is not valid.
  boolean isBroken(String name) {
    return Stream.of(shell.variables(), shell.methods(), shell.types())
        .flatMap(snippets -> snippets)
        .anyMatch(snippet -> snippet.name().equals(name) && !shell.status(snippet).isDefined());
  }

  /// Returns the session's variable of a type, if it has one.
  Optional<String> variable(Class<?> type) {
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

  /// Returns the variables whose class is known, with the class.
  Map<String, Class<?>> values() {
    var values = new LinkedHashMap<String, Class<?>>();
    shell
        .variables()
        .filter(variable -> shell.status(variable).isDefined() && !variable.name().startsWith("$"))
        .forEach(
            variable ->
                api()
                    .type(variable.typeName())
                    .ifPresent(type -> values.put(variable.name(), type)));
    return values;
  }
}
