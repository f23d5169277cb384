package braid.launcher.compile;

import braid.launcher.Nearest;
import braid.launcher.compile.PublicApi.Name;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Remedies for names that the compiler does not know or may not use.
final class NameHints {
  /// Letters of the shortest name that may be meant by a longer one.
  private static final int SHORTEST_PART = 4;

  /// Constants of the largest enum that is listed.
  private static final int MOST_CONSTANTS = 12;

  /// Imports shown as a remedy; if more classes have the name, none of them is likely to be meant.
  private static final int MOST_IMPORTS = 3;

  private static final Pattern SYMBOL =
      Pattern.compile(
          "symbol:\\s+(variable|method|class)\\s+([\\w$]+)|(?:(package) )([\\w$]+) does not exist");
  private static final Pattern LOCATION =
      Pattern.compile("location:\\s+(variable \\S+ of type|\\w+)\\s+([\\w$]+(?:\\.[\\w$]+)*)");

  /// Members shown of a class that has none of a name.
  private static final int MOST_MEMBERS = 8;

  private static final Pattern CALLED =
      Pattern.compile(
          "method ([\\w$]+) in (?:record|class|interface|enum) ([\\w$.]+)"
              + "|method ([\\w$.]+)\\.(?:<[^>]*>)?([\\w$]+)\\([^\\n]*\\) is not applicable");
  private static final Pattern OWNER =
      Pattern.compile("(?:in (?:record|class|interface|enum)|access in) ([\\w$.]+)");

  private static final Set<String> OF_OBJECT =
      Arrays.stream(Object.class.getMethods())
          .map(Method::getName)
          .collect(Collectors.toUnmodifiableSet());

  private final SessionNames names;
  private final SuggestionCheck check;
  private final ConstructorHints constructors;
  private final OtherCells otherCells;

  NameHints(
      SessionNames names,
      SuggestionCheck check,
      ConstructorHints constructors,
      OtherCells otherCells) {
    this.names = names;
    this.check = check;
    this.constructors = constructors;
    this.otherCells = otherCells;
  }

  /// Returns a remedy for a name that the compiler does not know or may not use.
  Optional<String> of(Rejection rejection) {
    var symbol = SYMBOL.matcher(rejection.message());
    boolean unknown = symbol.find();
    var location = LOCATION.matcher(rejection.message());
    var owner = OWNER.matcher(rejection.message());
    var source = rejection.source();
    boolean isQualified = rejection.isMember();
    if (!unknown) {
      return isQualified
              && (rejection.isCall() || rejection.code().contains("report.access"))
              && owner.find()
          ? member(rejection, rejection.isCall() ? "method" : "variable", owner.group(1), false)
          : isQualified && rejection.code().contains("non-static")
              ? instance(rejection)
              : Optional.empty();
    }
    if ("package".equals(symbol.group(3))) {
      var whole =
          new Rejection(source, rejection.start(), rejection.start(), rejection.end(), "", "");
      return unqualified(whole, "variable", symbol.group(4));
    }
    var kind = symbol.group(1);
    var name = symbol.group(2);
    if (!isQualified) {
      return otherCells.declares().test(name)
          ? Optional.of(otherCells.hint(name))
          : unqualified(rejection, kind, name);
    }
    if (!location.find()) {
      return Optional.empty();
    }
    var place = location.group(2);
    return location.group(1).equals("package")
        ? inPackage(rejection, name, place)
        : member(rejection, kind, place, true);
  }

  private Optional<String> inPackage(Rejection rejection, String name, String place) {
    var near = names.classes(place);
    return check
        .suggested(rejection, named(rejection, near, name))
        .or(
            () ->
                names.importable(name).stream()
                    .findFirst()
                    .map(found -> "did you mean `" + found + "`?"));
  }

  /// Returns rewrites of the rejected name to those closest to it.
  private static List<Rewrite> named(Rejection rejection, List<Name> known, String mistyped) {
    var close = Spelling.close(mistyped, known.stream().map(Name::simple).distinct().toList());
    boolean isQualified =
        rejection.nameRange()[0] > rejection.position(); // the qualifier is written already
    return known.stream()
        .filter(name -> close.contains(name.simple()))
        .map(
            name ->
                Rewrite.ofName(
                    rejection,
                    isQualified
                        ? name.simple() + (name.written().endsWith("()") ? "()" : "")
                        : name.written(),
                    name.written()))
        .distinct()
        .toList();
  }

  /// Returns a remedy for an unknown member, or one that takes other arguments.
  private Optional<String> member(Rejection rejection, String kind, String owner, boolean unknown) {
    var loaded = PublicApi.load(owner);
    if (loaded.isEmpty()) {
      return Optional.empty();
    }
    var type = loaded.get();
    var range = rejection.nameRange();
    var name = rejection.source().substring(range[0], range[1]);
    var members =
        PublicApi.members(type, kind).stream()
            .filter(each -> unknown || !rejection.isCall())
            .toList();
    return check
        .suggested(rejection, named(rejection, members, name))
        .or(() -> check.suggested(rejection, ConstructorHints.withNew(rejection, kind)))
        .or(() -> check.suggested(rejection, similar(rejection, members, name)))
        .or(() -> kind.equals("method") ? elsewhere(rejection, type, name) : Optional.empty())
        .or(() -> unknown ? otherArguments(type, name) : Optional.empty())
        .or(() -> unknown ? present(type, members, name) : Optional.empty());
  }

  /// Returns the members that a class has instead, those with the closest names first.
  private static Optional<String> present(Class<?> type, List<Name> members, String name) {
    var own =
        members.stream()
            .filter(member -> !OF_OBJECT.contains(member.simple()))
            .map(Name::written)
            .distinct()
            .toList();
    var nearest = Nearest.sorted(name, own).stream().limit(MOST_MEMBERS);
    return own.isEmpty()
        ? Optional.empty()
        : Optional.of(
            "`%s` has no `%s`; it has %s%s"
                .formatted(
                    type.getSimpleName(),
                    name,
                    nearest.map("`%s`"::formatted).collect(Collectors.joining(", ")),
                    own.size() > MOST_MEMBERS ? ", …" : ""));
  }

  /// Returns the parameters of a called method that takes other arguments.
  Optional<String> parameters(Rejection rejection) {
    var called = CALLED.matcher(rejection.message());
    if (!rejection.isCall() || !called.find()) {
      return Optional.empty();
    }
    boolean single = called.group(1) != null;
    var name = called.group(single ? 1 : 4);
    return PublicApi.load(called.group(single ? 2 : 3))
        .map(type -> PublicApi.signatures(type, name))
        .filter(signatures -> !signatures.isEmpty())
        .map(signatures -> "it is declared as " + SuggestionCheck.joined(signatures));
  }

  /// Returns rewrites to the name that is part of the rejected one, as `size` is of `world_size`,
  /// or that begins with it.
  private static List<Rewrite> similar(Rejection rejection, List<Name> members, String name) {
    return members.stream()
        .filter(member -> Math.min(member.simple().length(), name.length()) >= SHORTEST_PART)
        .filter(
            member ->
                Spelling.plain(member.simple()).startsWith(Spelling.plain(name))
                    || (!member.written().contains(".")
                        && (Spelling.plain(name).startsWith(Spelling.plain(member.simple()))
                            || Spelling.plain(name).endsWith(Spelling.plain(member.simple())))))
        .sorted(
            Comparator.comparing(
                    (Name member) ->
                        !Spelling.plain(name).endsWith(Spelling.plain(member.simple())))
                .thenComparingInt(member -> -member.simple().length()))
        .limit(1)
        .flatMap(member -> named(rejection, members, member.simple()).stream())
        .toList();
  }

  /// Returns a call of a method with that name of what the receiver returns, such as its local
  /// tensor, or of what is made from it, such as its collectives.
  private Optional<String> elsewhere(Rejection rejection, Class<?> type, String name) {
    var range = rejection.nameRange();
    int dot = rejection.position();
    if (rejection.start() >= dot) {
      return Optional.empty();
    }
    var receiver = rejection.source().substring(rejection.start(), dot);
    var rewrites = new ArrayList<Rewrite>();
    for (var path : PublicApi.paths(type, Spelling.plain(name), Spelling::plain)) {
      rewrites.add(Rewrite.ofCall(rejection, receiver + "." + path));
    }
    for (var path : names.api().made(type, Spelling.plain(name), Spelling::plain)) {
      rewrites.add(Rewrite.ofCall(rejection, path.formatted(receiver)));
    }
    var found =
        check.compiling(rejection, rewrites).stream().map(r -> "`" + r.shown() + "`").toList();
    return found.isEmpty() || range[1] == range[0]
        ? Optional.empty()
        : Optional.of("did you mean " + SuggestionCheck.joined(found) + "?");
  }

  /// Returns a call of an instance method on a value of its class.
  private Optional<String> instance(Rejection rejection) {
    var range = rejection.nameRange();
    var receiver = rejection.source().substring(rejection.start(), rejection.position());
    var name = rejection.source().substring(range[0], range[1]);
    var type = names.api().type(receiver).or(() -> PublicApi.load(receiver));
    if (type.isEmpty()) {
      return Optional.empty();
    }
    var rewrites = new ArrayList<Rewrite>();
    Stream.concat(
            names.variable(type.get()).stream(),
            PublicApi.factories(type.get(), names::variable).stream())
        .forEach(value -> rewrites.add(Rewrite.ofCall(rejection, value + "." + name)));
    return check.compiling(rejection, rewrites).stream()
        .findFirst()
        .map(
            found ->
                "`%s` needs a value of %s: write `%s`".formatted(name, receiver, found.shown()));
  }

  /// Returns the method that is close to an unknown name, with its parameters, or all constants.
  private static Optional<String> otherArguments(Class<?> type, String name) {
    var members = PublicApi.members(type, "method").stream().map(Name::simple).distinct().toList();
    var close = Spelling.close(name, members);
    if (close.size() == 1 || members.contains(name)) {
      var method = members.contains(name) ? name : close.getFirst();
      return Optional.of(
          "the closest is " + SuggestionCheck.joined(PublicApi.signatures(type, method)));
    }
    if (PublicApi.hasField(type, name)) {
      return Optional.of("`" + name + "` is no method: leave out the brackets");
    }
    var constants = PublicApi.constants(type).stream().map(Name::simple).toList();
    return type.isEnum() && constants.size() <= MOST_CONSTANTS
        ? Optional.of("`" + type.getSimpleName() + "` has " + String.join(", ", constants))
        : Optional.empty();
  }

  private Optional<String> unqualified(Rejection rejection, String kind, String name) {
    if (names.isBroken(name)) {
      return Optional.of("the cell that declares `" + name + "` failed; correct and run it first");
    }
    var known = new ArrayList<Name>();
    switch (kind) {
      case "variable" -> {
        known.addAll(names.variables());
        known.addAll(names.types());
        known.addAll(names.api().types());
        known.addAll(names.api().constants());
      }
      case "method" -> {
        known.addAll(names.methods());
        known.addAll(names.api().functions());
        known.addAll(PublicApi.members(Math.class, kind));
      }
      default -> {
        known.addAll(names.types());
        known.addAll(names.api().types());
      }
    }
    return (kind.equals("method") ? Optional.<String>empty() : unimported(name))
        .or(() -> check.suggested(rejection, named(rejection, known, name)))
        .or(() -> check.suggested(rejection, ConstructorHints.withNew(rejection, kind)))
        .or(() -> check.suggested(rejection, ofOwnValues(rejection, kind, name)))
        .or(() -> constructors.instead(rejection, known, kind, name));
  }

  /// Returns members of the session's variables, and constants of its enums.
  private List<Rewrite> ofOwnValues(Rejection rejection, String kind, String name) {
    var found = new ArrayList<Rewrite>();
    if (kind.equals("method")) {
      names
          .values()
          .forEach(
              (variable, type) ->
                  PublicApi.members(type, kind).stream()
                      .map(Name::simple)
                      .filter(member -> Spelling.plain(member).equals(Spelling.plain(name)))
                      .map(member -> variable + "." + member)
                      .forEach(call -> found.add(Rewrite.ofCall(rejection, call))));
    } else if (kind.equals("variable")) {
      names
          .types()
          .forEach(
              type -> {
                var constant = type.simple() + "." + name;
                found.add(Rewrite.ofName(rejection, constant, constant));
              });
    }
    return found;
  }

  /// Returns the import of a class that is not imported.
  private Optional<String> unimported(String name) {
    boolean isUnknown = Character.isUpperCase(name.charAt(0)) && names.api().type(name).isEmpty();
    var found = isUnknown ? names.importable(name) : List.<String>of();
    return found.isEmpty() || found.size() > MOST_IMPORTS
        ? Optional.empty()
        : Optional.of(
            "import it first: "
                + SuggestionCheck.joined(found.stream().map(f -> "`import " + f + ";`").toList()));
  }
}
