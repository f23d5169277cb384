package braid.launcher.compile;

import braid.launcher.compile.PublicApi.Name;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Remedies for constructors that a cell cannot call: the calls that replace them.
final class ConstructorHints {
  private static final Pattern NEW =
      Pattern.compile("new\\s+([\\w$]+(?:\\s*\\.\\s*[\\w$]+)*)\\s*[(<]");

  private final SessionNames names;
  private final SuggestionCheck check;

  ConstructorHints(SessionNames names, SuggestionCheck check) {
    this.names = names;
    this.check = check;
  }

  /// Returns the calls that replace a constructor which has other parameters.
  Optional<String> factory(Rejection rejection) {
    var called =
        NEW.matcher(rejection.source()).region(rejection.position(), rejection.source().length());
    if (!rejection.isCall() || !called.lookingAt()) {
      return Optional.empty();
    }
    var type = names.api().type(called.group(1));
    if (type.isEmpty()) {
      return Optional.empty();
    }
    int bracket = called.end() - 1;
    int end = rejection.afterArguments(bracket);
    var arguments = rejection.source().substring(bracket, end);
    var rewrites =
        PublicApi.makers(type.get()).stream()
            .map(
                call ->
                    new Rewrite(rejection.position(), end, end, call + arguments, call + arguments))
            .toList();
    var found =
        check.compiling(rejection, rewrites).stream().map(r -> "`" + r.shown() + "`").toList();
    return found.isEmpty()
        ? Optional.empty()
        : Optional.of("did you mean " + SuggestionCheck.joined(found) + "?");
  }

  /// Returns the message for a constructor that a cell cannot call, at the error's position or
  /// around it; empty if the class has a public one.
  Optional<String> message(Rejection rejection) {
    var source = rejection.source();
    int position = rejection.position();
    var called = NEW.matcher(source).region(position, source.length());
    if (!called.lookingAt()
        && !("compiler.err.prob.found.req".equals(rejection.code())
            && findAround(position, called, source))) {
      return Optional.empty();
    }
    var name = called.group(1).replaceAll("\\s", "");
    return names
        .api()
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

  /// Returns what replaces the constructor of a close class that has none for these arguments.
  Optional<String> instead(Rejection rejection, List<Name> known, String kind, String name) {
    if (kind.equals("method")) {
      return names
          .api()
          .type(name)
          .flatMap(
              type ->
                  check
                      .suggested(
                          rejection,
                          PublicApi.makers(type).stream()
                              .map(call -> Rewrite.ofCall(rejection, call))
                              .toList())
                      .or(() -> Optional.of("`" + name + "` is a class" + instead(type))));
    }
    if (!rejection.source().substring(0, rejection.position()).stripTrailing().endsWith("new")) {
      return Optional.empty();
    }
    return Spelling.close(name, known.stream().map(Name::simple).distinct().toList()).stream()
        .flatMap(close -> names.api().type(close).stream())
        .filter(PublicApi::hasNoConstructor)
        .findFirst()
        .map(type -> type.getSimpleName() + " has no public constructor" + instead(type));
  }

  private String instead(Class<?> type) {
    var factories = PublicApi.factories(type, names::variable);
    if (!factories.isEmpty()) {
      return ": begin with " + SuggestionCheck.joined(factories);
    }
    var sources = names.api().sources(type);
    return sources.isEmpty() ? "" : ": one is returned by " + SuggestionCheck.joined(sources);
  }

  /// Returns the rewrite that puts `new` before the name of a class.
  static List<Rewrite> withNew(Rejection rejection, String kind) {
    var range = rejection.nameRange();
    if (!kind.equals("method") || !Character.isUpperCase(rejection.source().charAt(range[0]))) {
      return List.of();
    }
    var call = rejection.source().substring(rejection.start(), range[1]);
    return List.of(Rewrite.ofCall(rejection, "new " + call));
  }
}
