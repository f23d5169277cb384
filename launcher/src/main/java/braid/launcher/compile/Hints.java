package braid.launcher.compile;

import braid.launcher.Nearest;
import braid.launcher.compile.PublicApi.Name;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.StandardJavaFileManager;
import jdk.jshell.Diag;
import jdk.jshell.ImportSnippet;
import jdk.jshell.JShell;
import jdk.jshell.MethodSnippet;
import jdk.jshell.Snippet;
import jdk.jshell.TypeDeclSnippet;
import jdk.jshell.VarSnippet;
import org.jspecify.annotations.Nullable;

/// Remedies for compiler errors. In this order:
///
/// 1. the table of mistakes, `mistakes.txt`, where it knows the line
/// 2. for an unknown name, the kind of cells that has it, its new name, or names like it
/// 3. for a wrong type, a conversion
/// 4. for a constructor that is not public, the calls that replace it
/// 5. the table of mistakes, where it knows the compiler's message
///
/// Code is suggested only if the session's compiler accepts it in place of what was written.
final class Hints {
  /// Names shown as a remedy; if more are equally close, none of them is likely to be meant.
  private static final int MOST_SHOWN = 3;

  /// Letters of the shortest name that may be meant by another one.
  private static final int SHORTEST_SIMILAR = 3;

  /// Letters of the shortest name that may be meant by a longer one.
  private static final int SHORTEST_PART = 4;

  /// Characters of the longest suggestion that is shown with its arguments.
  private static final int LONGEST_SHOWN = 80;

  /// Constants of the largest enum that is listed.
  private static final int MOST_CONSTANTS = 12;

  private static final Pattern SYMBOL =
      Pattern.compile(
          "symbol:\\s+(variable|method|class)\\s+([\\w$]+)|(?:(package) )([\\w$]+) does not exist");
  private static final Pattern LOCATION =
      Pattern.compile("location:\\s+(variable \\S+ of type|\\w+)\\s+([\\w$]+(?:\\.[\\w$]+)*)");
  private static final Pattern OWNER =
      Pattern.compile("(?:in (?:record|class|interface|enum)|access in) ([\\w$.]+)");
  private static final Pattern REQUIRED =
      Pattern.compile("(?:converted to|conforms to) ([\\w$.]+)\\b(?!.*converted to)");
  private static final Pattern UNRESOLVED = Pattern.compile("(variable|method|class) ([\\w$]+).*");
  private static final Pattern NEW =
      Pattern.compile("new\\s+([\\w$]+(?:\\s*\\.\\s*[\\w$]+)*)\\s*[(<]");

  private final JShell shell;
  private final Function<String, List<String>> classesOf;
  private final OtherCells other;
  private final SuggestionCheck check;
  private @Nullable PublicApi imported;

  /// @param classesOf returns the binary names of the classes of a package
  Hints(
      JShell shell,
      StandardJavaFileManager files,
      Function<String, List<String>> classesOf,
      OtherCells other) {
    this.shell = shell;
    this.other = other;
    this.classesOf = classesOf;
    check = new SuggestionCheck(shell, files);
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

  /// Returns the class of a name, which is written as in a cell or in full.
  Optional<Class<?>> type(String name) {
    return api().type(name).or(() -> PublicApi.load(name));
  }

  /// Returns a remedy for an error of a snippet; empty if none is likely.
  Optional<String> of(Diag diagnostic, String source) {
    return diagnostic.getPosition() < 0 ? Optional.empty() : of(Rejection.of(diagnostic, source));
  }

  private Optional<String> of(Rejection rejection) {
    return line(rejection)
        .or(() -> name(rejection))
        .or(() -> conversion(rejection))
        .or(() -> factory(rejection))
        .or(() -> message(rejection));
  }

  /// Returns a remedy for a dependency that JShell could not resolve, such as `variable splts`.
  Optional<String> forUnresolved(String dependency, String source) {
    var symbol = UNRESOLVED.matcher(dependency);
    if (!symbol.matches()) {
      return Optional.empty();
    }
    var name = symbol.group(2);
    var written =
        Pattern.compile("(?<![\\w$.])" + Pattern.quote(name) + "(?![\\w$])")
            .matcher(Rejection.withoutQuotes(source));
    return written.find()
        ? of(
            new Rejection(
                source,
                written.start(),
                written.start(),
                written.end(),
                "",
                "symbol: " + symbol.group(1) + " " + name))
        : Optional.empty();
  }

  /// Returns a remedy for code that is incomplete or no Java: that of the first line which the
  /// table knows.
  static Optional<String> forIncomplete(String source) {
    for (var line : source.lines().toList()) {
      for (var mistake : Mistake.ALL) {
        if (mistake.error() == null && mistake.text() != null) {
          for (var match : Mistake.matches(mistake.text(), line)) {
            var remark = mistake.remark(match, line);
            if (remark.isPresent()) {
              return remark;
            }
          }
        }
      }
    }
    return Optional.empty();
  }

  /// Returns the remedy of the table for the line of an error.
  private Optional<String> line(Rejection rejection) {
    int begin = rejection.source().lastIndexOf('\n', rejection.position() - 1) + 1;
    int newline = rejection.source().indexOf('\n', rejection.position());
    int end = newline < 0 ? rejection.source().length() : newline;
    var found = line(rejection, begin, end);
    int first = rejection.source().indexOf('\n');
    return found.isEmpty() && rejection.isSyntax() && first >= 0 && begin > 0
        ? line(rejection, 0, first)
        : found;
  }

  private Optional<String> line(Rejection rejection, int begin, int end) {
    var line = rejection.source().substring(begin, end);
    int at = rejection.position() - begin;
    for (var mistake : Mistake.ALL) {
      if (mistake.text() == null || !mistake.isOf(rejection)) {
        continue;
      }
      var matches = Mistake.matches(mistake.text(), line);
      var hit =
          matches.stream()
              .filter(match -> rejection.isSyntax() || Mistake.explains(match, at, rejection))
              .findFirst();
      if (hit.isPresent()) {
        int from = matches.getFirst().start();
        int to = matches.getLast().end();
        var rewrites = new ArrayList<Rewrite>();
        for (var code : mistake.codes()) {
          var replaced = new StringBuilder(line);
          for (var match : matches.reversed()) {
            replaced.replace(match.start(), match.end(), Mistake.filled(code, match, line));
          }
          var text = replaced.substring(from, replaced.length() - (line.length() - to));
          int reach = rejection.afterArguments(begin + to);
          rewrites.add(whole(rejection, begin + from, begin + to, reach, text));
        }
        var code = compiling(rejection, rewrites);
        var remedy = joined(mistake.remark(hit.get(), line), code);
        // A member of another type has its own near names.
        boolean isSure = rewrites.isEmpty() || !code.isEmpty() || !isMember(rejection);
        if (isSure && remedy.isPresent()) {
          return remedy;
        }
      }
    }
    return Optional.empty();
  }

  /// Returns a rewrite that is shown with the rest of its line, unless that is long.
  private static Rewrite whole(Rejection rejection, int start, int end, int reach, String code) {
    var source = rejection.source();
    int newline = source.indexOf('\n', end);
    var line =
        (source.substring(source.lastIndexOf('\n', start - 1) + 1, start)
                + code
                + source.substring(end, newline < 0 ? source.length() : newline))
            .strip();
    return new Rewrite(start, end, reach, code, line.length() > LONGEST_SHOWN ? code : line);
  }

  private List<Rewrite> compiling(Rejection rejection, List<Rewrite> rewrites) {
    return check.compiling(rejection.source(), rejection.position(), rewrites);
  }

  private static Optional<String> joined(Optional<String> remark, List<Rewrite> code) {
    if (code.isEmpty()) {
      return remark;
    }
    var shown = "`" + code.getFirst().shown().strip() + "`";
    return Optional.of(
        remark
            .map(text -> text.contains(shown) ? text : text + ": " + shown)
            .orElse("write " + shown));
  }

  /// Returns the remedy of the table for the compiler's message alone.
  private static Optional<String> message(Rejection rejection) {
    return Mistake.ALL.stream()
        .filter(m -> m.text() == null && m.expression() == null && m.error() != null)
        .flatMap(
            mistake -> {
              var match = mistake.error().matcher(rejection.message());
              return match.find()
                  ? mistake.remark(match, rejection.message()).stream()
                  : Stream.empty();
            })
        .findFirst();
  }

  /// Returns code that converts the rejected expression, or one of the rejected arguments.
  private Optional<String> conversion(Rejection rejection) {
    var expressions = new ArrayList<int[]>();
    if (rejection.isCall()) {
      expressions.addAll(rejection.arguments(nameRange(rejection)[1]));
    } else if (REQUIRED.matcher(rejection.message()).find()
        || rejection.message().contains("lossy")) {
      expressions.add(new int[] {rejection.start(), rejection.end()});
    }
    var rewrites = new ArrayList<Rewrite>();
    for (var range : expressions) {
      var expression = rejection.source().substring(range[0], range[1]);
      for (var code : conversions(rejection, expression)) {
        rewrites.add(whole(rejection, range[0], range[1], rejection.source().length(), code));
      }
    }
    return compiling(rejection, rewrites).stream()
        .findFirst()
        .map(code -> "write `" + code.shown() + "`");
  }

  private List<String> conversions(Rejection rejection, String expression) {
    var codes = new ArrayList<String>();
    var required = REQUIRED.matcher(rejection.message());
    var type = required.find() ? PublicApi.load(required.group(1)) : Optional.<Class<?>>empty();
    type.ifPresent(
        each -> codes.addAll(spelled(expression.replace("\"", ""), PublicApi.constants(each))));
    for (var mistake : Mistake.ALL) {
      if (mistake.expression() != null && mistake.isOf(rejection)) {
        var match = mistake.expression().matcher(expression);
        if (match.matches()) {
          mistake.codes().forEach(code -> codes.add(Mistake.filled(code, match, expression)));
        }
      }
    }
    type.ifPresent(
        each -> PublicApi.makers(each).forEach(name -> codes.add(name + "(" + expression + ")")));
    return codes;
  }

  /// Returns a remedy for a name that the compiler does not know or may not use.
  private Optional<String> name(Rejection rejection) {
    var symbol = SYMBOL.matcher(rejection.message());
    boolean unknown = symbol.find();
    var location = LOCATION.matcher(rejection.message());
    var owner = OWNER.matcher(rejection.message());
    var source = rejection.source();
    boolean isQualified = isMember(rejection);
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
      var at = new Rejection(source, rejection.start(), rejection.start(), rejection.end(), "", "");
      return unqualified(at, "variable", symbol.group(4));
    }
    var kind = symbol.group(1);
    var name = symbol.group(2);
    if (!isQualified) {
      return other.declares().test(name)
          ? Optional.of(other.hint(name))
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

  /// Returns true if the error is at a dot or a double colon, which the rejected name follows.
  private static boolean isMember(Rejection rejection) {
    int at = rejection.position();
    return at < rejection.source().length() && ".:".indexOf(rejection.source().charAt(at)) >= 0;
  }

  private Optional<String> inPackage(Rejection rejection, String name, String place) {
    var near = new PublicApi(List.of(place + ".*"), List.of(), classesOf).types();
    return suggested(rejection, named(rejection, near, name))
        .or(
            () ->
                importable(name).stream()
                    .findFirst()
                    .map(found -> "did you mean `" + found + "`?"));
  }

  /// Returns the rejected name's range: from after a dot to its end.
  private static int[] nameRange(Rejection rejection) {
    var source = rejection.source();
    int from = rejection.position();
    while (from < source.length() && !Character.isJavaIdentifierStart(source.charAt(from))) {
      from++;
    }
    int to = from;
    while (to < source.length() && Character.isJavaIdentifierPart(source.charAt(to))) {
      to++;
    }
    return new int[] {from, to};
  }

  private static Rewrite renamed(Rejection rejection, String replacement, String shown) {
    var range = nameRange(rejection);
    return new Rewrite(range[0], range[1], rejection.afterArguments(range[1]), replacement, shown);
  }

  /// Returns rewrites of the rejected name to those closest to it.
  private static List<Rewrite> named(Rejection rejection, List<Name> names, String mistyped) {
    var close = close(mistyped, names.stream().map(Name::simple).distinct().toList());
    boolean isQualified =
        nameRange(rejection)[0] > rejection.position(); // the qualifier is written already
    return names.stream()
        .filter(name -> close.contains(name.simple()))
        .map(
            name ->
                renamed(
                    rejection,
                    isQualified
                        ? name.simple() + (name.written().endsWith("()") ? "()" : "")
                        : name.written(),
                    name.written()))
        .distinct()
        .toList();
  }

  /// Returns the names that a mistyped one may mean: equal ones but for case and separators, or
  /// else those that differ by few letters.
  private static List<String> close(String mistyped, Collection<String> names) {
    var plain = plain(mistyped);
    var equal = names.stream().filter(name -> plain(name).equals(plain)).toList();
    return !equal.isEmpty()
        ? equal
        : mistyped.length() < SHORTEST_SIMILAR
            ? List.of()
            : Nearest.close(mistyped, names).stream()
                .filter(name -> !name.equals(mistyped))
                .toList();
  }

  /// Returns a name without case, separators and the prefix of an accessor or a factory.
  private static String plain(String name) {
    return name.replaceFirst("^(?:get|is|set|of|to|with)(?=[A-Z_])_?", "")
        .replace("_", "")
        .toLowerCase(Locale.ROOT);
  }

  private static List<String> spelled(String mistyped, List<Name> names) {
    return names.stream()
        .filter(name -> plain(name.simple()).equals(plain(mistyped)))
        .map(Name::written)
        .toList();
  }

  private Optional<String> suggested(Rejection rejection, List<Rewrite> rewrites) {
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

  /// Returns a remedy for an unknown member, or one that takes other arguments.
  private Optional<String> member(Rejection rejection, String kind, String owner, boolean unknown) {
    var loaded = PublicApi.load(owner);
    if (loaded.isEmpty()) {
      return Optional.empty();
    }
    var type = loaded.get();
    var range = nameRange(rejection);
    var name = rejection.source().substring(range[0], range[1]);
    var members =
        PublicApi.members(type, kind).stream()
            .filter(each -> unknown || !rejection.isCall())
            .toList();
    return suggested(rejection, named(rejection, members, name))
        .or(() -> suggested(rejection, constructed(rejection, kind)))
        .or(() -> suggested(rejection, similar(rejection, members, name)))
        .or(() -> kind.equals("method") ? elsewhere(rejection, type, name) : Optional.empty())
        .or(() -> unknown ? otherArguments(type, name) : Optional.empty());
  }

  /// Returns rewrites to the name that is part of the rejected one, as `size` is of `world_size`,
  /// or that begins with it.
  private static List<Rewrite> similar(Rejection rejection, List<Name> members, String name) {
    return members.stream()
        .filter(member -> Math.min(member.simple().length(), name.length()) >= SHORTEST_PART)
        .filter(
            member ->
                plain(member.simple()).startsWith(plain(name))
                    || (!member.written().contains(".")
                        && (plain(name).startsWith(plain(member.simple()))
                            || plain(name).endsWith(plain(member.simple())))))
        .sorted(
            Comparator.comparing((Name member) -> !plain(name).endsWith(plain(member.simple())))
                .thenComparingInt(member -> -member.simple().length()))
        .limit(1)
        .flatMap(member -> named(rejection, members, member.simple()).stream())
        .toList();
  }

  /// Returns the rewrite that puts `new` before the name of a class.
  private static List<Rewrite> constructed(Rejection rejection, String kind) {
    var range = nameRange(rejection);
    if (!kind.equals("method") || !Character.isUpperCase(rejection.source().charAt(range[0]))) {
      return List.of();
    }
    var call = rejection.source().substring(rejection.start(), range[1]);
    return List.of(rewrittenCall(rejection, "new " + call));
  }

  /// Returns the rewrite of everything before a call's arguments.
  private static Rewrite rewrittenCall(Rejection rejection, String call) {
    var range = nameRange(rejection);
    int end = rejection.afterArguments(range[1]);
    var whole = call + rejection.source().substring(range[1], end);
    return new Rewrite(
        rejection.start(), range[1], end, call, whole.length() > LONGEST_SHOWN ? call : whole);
  }

  /// Returns a call of a method with that name of what the receiver returns, such as its local
  /// tensor, or of what is made from it, such as its collectives.
  private Optional<String> elsewhere(Rejection rejection, Class<?> type, String name) {
    var range = nameRange(rejection);
    int dot = rejection.position();
    if (rejection.start() >= dot) {
      return Optional.empty();
    }
    var receiver = rejection.source().substring(rejection.start(), dot);
    var rewrites = new ArrayList<Rewrite>();
    for (var path : PublicApi.paths(type, plain(name), Hints::plain)) {
      rewrites.add(rewrittenCall(rejection, receiver + "." + path));
    }
    for (var path : api().made(type, plain(name), Hints::plain)) {
      rewrites.add(rewrittenCall(rejection, path.formatted(receiver)));
    }
    var found = compiling(rejection, rewrites).stream().map(r -> "`" + r.shown() + "`").toList();
    return found.isEmpty() || range[1] == range[0]
        ? Optional.empty()
        : Optional.of("did you mean " + joined(found) + "?");
  }

  /// Returns a call of an instance method on a value of its class.
  private Optional<String> instance(Rejection rejection) {
    var range = nameRange(rejection);
    var receiver = rejection.source().substring(rejection.start(), rejection.position());
    var name = rejection.source().substring(range[0], range[1]);
    var type = api().type(receiver).or(() -> PublicApi.load(receiver));
    if (type.isEmpty()) {
      return Optional.empty();
    }
    var rewrites = new ArrayList<Rewrite>();
    Stream.concat(
            variable(type.get()).stream(), PublicApi.factories(type.get(), this::variable).stream())
        .forEach(value -> rewrites.add(rewrittenCall(rejection, value + "." + name)));
    return compiling(rejection, rewrites).stream()
        .findFirst()
        .map(
            found ->
                "`%s` needs a value of %s: write `%s`".formatted(name, receiver, found.shown()));
  }

  /// Returns the method that is close to an unknown name, with its parameters, or all constants.
  private static Optional<String> otherArguments(Class<?> type, String name) {
    var members = PublicApi.members(type, "method").stream().map(Name::simple).distinct().toList();
    var close = close(name, members);
    if (close.size() == 1 || members.contains(name)) {
      var method = members.contains(name) ? name : close.getFirst();
      return Optional.of("the closest is " + joined(PublicApi.signatures(type, method)));
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
    if (isBroken(name)) {
      return Optional.of("the cell that declares `" + name + "` failed; correct and run it first");
    }
    var names = new ArrayList<Name>();
    switch (kind) {
      case "variable" -> {
        names.addAll(own(shell.variables()));
        names.addAll(own(shell.types()));
        names.addAll(api().types());
        names.addAll(api().constants());
      }
      case "method" -> {
        names.addAll(own(shell.methods()));
        names.addAll(api().functions());
        names.addAll(PublicApi.members(Math.class, kind));
      }
      default -> {
        names.addAll(own(shell.types()));
        names.addAll(api().types());
      }
    }
    return (kind.equals("method") ? Optional.<String>empty() : unimported(name))
        .or(() -> suggested(rejection, named(rejection, names, name)))
        .or(() -> suggested(rejection, constructed(rejection, kind)))
        .or(() -> suggested(rejection, ofOwnValues(rejection, kind, name)))
        .or(() -> withoutConstructor(rejection, names, kind, name));
  }

  /// Returns what replaces the constructor of a close class that has none for these arguments.
  private Optional<String> withoutConstructor(
      Rejection rejection, List<Name> names, String kind, String name) {
    if (kind.equals("method")) {
      return api()
          .type(name)
          .flatMap(
              type ->
                  suggested(
                          rejection,
                          PublicApi.makers(type).stream()
                              .map(call -> rewrittenCall(rejection, call))
                              .toList())
                      .or(() -> Optional.of("`" + name + "` is a class" + instead(type))));
    }
    if (!rejection.source().substring(0, rejection.position()).stripTrailing().endsWith("new")) {
      return Optional.empty();
    }
    return close(name, names.stream().map(Name::simple).distinct().toList()).stream()
        .flatMap(close -> api().type(close).stream())
        .filter(PublicApi::hasNoConstructor)
        .findFirst()
        .map(type -> type.getSimpleName() + " has no public constructor" + instead(type));
  }

  /// Returns true if a cell has declared the name but its declaration is not valid.
  private boolean isBroken(String name) {
    return Stream.of(shell.variables(), shell.methods(), shell.types())
        .flatMap(snippets -> snippets)
        .anyMatch(snippet -> snippet.name().equals(name) && !shell.status(snippet).isDefined());
  }

  /// Returns members of the session's variables, and constants of its enums.
  private List<Rewrite> ofOwnValues(Rejection rejection, String kind, String name) {
    var found = new ArrayList<Rewrite>();
    if (kind.equals("method")) {
      shell
          .variables()
          .filter(
              variable -> shell.status(variable).isDefined() && !variable.name().startsWith("$"))
          .forEach(
              variable ->
                  api()
                      .type(variable.typeName())
                      .ifPresent(
                          type ->
                              PublicApi.members(type, kind).stream()
                                  .map(Name::simple)
                                  .filter(member -> plain(member).equals(plain(name)))
                                  .map(member -> variable.name() + "." + member)
                                  .forEach(call -> found.add(rewrittenCall(rejection, call)))));
    } else if (kind.equals("variable")) {
      own(shell.types())
          .forEach(
              type -> {
                var constant = type.simple() + "." + name;
                found.add(renamed(rejection, constant, constant));
              });
    }
    return found;
  }

  /// Returns the import of a class that is not imported.
  private Optional<String> unimported(String name) {
    boolean isUnknown = Character.isUpperCase(name.charAt(0)) && api().type(name).isEmpty();
    var found = isUnknown ? importable(name) : List.<String>of();
    return found.isEmpty() || found.size() > MOST_SHOWN
        ? Optional.empty()
        : Optional.of(
            "import it first: " + joined(found.stream().map(f -> "`import " + f + ";`").toList()));
  }

  private List<String> importable(String name) {
    return PublicApi.named(name, classesOf);
  }

  private List<Name> own(Stream<? extends Snippet> snippets) {
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

  /// Returns the calls that replace a constructor which has other parameters.
  private Optional<String> factory(Rejection rejection) {
    var called =
        NEW.matcher(rejection.source()).region(rejection.position(), rejection.source().length());
    if (!rejection.isCall() || !called.lookingAt()) {
      return Optional.empty();
    }
    var type = api().type(called.group(1));
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
    var found = compiling(rejection, rewrites).stream().map(r -> "`" + r.shown() + "`").toList();
    return found.isEmpty() ? Optional.empty() : Optional.of("did you mean " + joined(found) + "?");
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
        && !("compiler.err.prob.found.req".equals(diagnostic.getCode())
            && findAround(position, called, source))) {
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
  private static boolean findAround(int position, java.util.regex.Matcher called, String source) {
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
