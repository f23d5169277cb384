package braid.launcher.compile;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import jdk.jshell.Diag;

/// Remedies for compiler errors. In this order:
///
/// 1. the table of mistakes, `mistakes.txt`, where it knows the line
/// 2. for an unknown name, the kind of cells that has it, its new name, or names like it
/// 3. for a wrong type, a conversion
/// 4. for a constructor that is not public, the calls that replace it
/// 5. the table of mistakes, where it knows the compiler's message
/// 6. for a call with other arguments, the declaration of the method
///
/// Code is suggested only if the session's compiler accepts it in place of what was written.
final class Hints {
  private static final Pattern REQUIRED =
      Pattern.compile("(?:converted to|conforms to) ([\\w$.]+)\\b(?!.*converted to)");
  private static final Pattern UNRESOLVED = Pattern.compile("(variable|method|class) ([\\w$]+).*");

  private final SuggestionCheck check;
  private final ConstructorHints constructors;
  private final NameHints unknown;

  Hints(SessionNames names, SuggestionCheck check, OtherCells otherCells) {
    this.check = check;
    constructors = new ConstructorHints(names, check);
    unknown = new NameHints(names, check, constructors, otherCells);
  }

  /// Returns a remedy for an error of a snippet; empty if none is likely.
  Optional<String> of(Diag diagnostic, String source) {
    return diagnostic.getPosition() < 0 ? Optional.empty() : of(Rejection.of(diagnostic, source));
  }

  Optional<String> of(Rejection rejection) {
    return line(rejection)
        .or(() -> unknown.of(rejection))
        .or(() -> conversion(rejection))
        .or(() -> constructors.factory(rejection))
        .or(() -> message(rejection))
        .or(() -> unknown.parameters(rejection));
  }

  /// Returns the message for a constructor that a cell cannot call; see [ConstructorHints].
  Optional<String> forConstructor(Diag diagnostic, String source) {
    return diagnostic.getPosition() < 0 || diagnostic.getPosition() > source.length()
        ? Optional.empty()
        : forConstructor(Rejection.of(diagnostic, source));
  }

  Optional<String> forConstructor(Rejection rejection) {
    return constructors.message(rejection);
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
    int position = rejection.position() - begin;
    for (var mistake : Mistake.ALL) {
      if (mistake.text() == null || !mistake.isOf(rejection)) {
        continue;
      }
      var matches = Mistake.matches(mistake.text(), line);
      var hit =
          matches.stream()
              .filter(match -> rejection.isSyntax() || Mistake.explains(match, position, rejection))
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
          rewrites.add(Rewrite.inItsLine(rejection, begin + from, begin + to, reach, text));
        }
        var code = check.compiling(rejection, rewrites);
        var remedy = joined(mistake.remark(hit.get(), line), code);
        // A member of another type has its own near names.
        boolean isSure = rewrites.isEmpty() || !code.isEmpty() || !rejection.isMember();
        if (isSure && remedy.isPresent()) {
          return remedy;
        }
      }
    }
    return Optional.empty();
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
      expressions.addAll(rejection.arguments(rejection.nameRange()[1]));
    } else if (REQUIRED.matcher(rejection.message()).find()
        || rejection.message().contains("lossy")) {
      expressions.add(new int[] {rejection.start(), rejection.end()});
    }
    var rewrites = new ArrayList<Rewrite>();
    for (var range : expressions) {
      var expression = rejection.source().substring(range[0], range[1]);
      for (var code : conversions(rejection, expression)) {
        rewrites.add(
            Rewrite.inItsLine(rejection, range[0], range[1], rejection.source().length(), code));
      }
    }
    return check.compiling(rejection, rewrites).stream()
        .findFirst()
        .map(code -> "write `" + code.shown() + "`");
  }

  private List<String> conversions(Rejection rejection, String expression) {
    var codes = new ArrayList<String>();
    var required = REQUIRED.matcher(rejection.message());
    var type = required.find() ? PublicApi.load(required.group(1)) : Optional.<Class<?>>empty();
    type.ifPresent(
        each ->
            codes.addAll(
                Spelling.spelled(expression.replace("\"", ""), PublicApi.constants(each))));
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
}
