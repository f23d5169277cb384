package braid.launcher.compile;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.regex.Pattern;
import javax.tools.Diagnostic;
import jdk.jshell.Diag;
import org.jspecify.annotations.Nullable;

/// The compiler's objection to a snippet.
///
/// @param position the character that it objects to
/// @param start first character of the rejected expression
/// @param end the character after its last one
/// @param code the compiler's code of the error; empty if the name of a declaration is unresolved
/// @param message in English
record Rejection(String source, int position, int start, int end, String code, String message) {
  private static final Pattern SYNTAX =
      Pattern.compile(
          "compiler\\.err\\.(?:expected.*|illegal\\.(?:start|char|text|esc|array|parenthesized).*|not\\.stmt|premature\\.eof|unclosed.*|empty\\.char.*|variable\\.not\\.allowed|else\\.without.*|catch\\.without.*|try\\.without.*|orphaned.*|underscore.*|restricted.*|class\\.not\\.allowed|malformed.*|int\\.number.*)");
  private static final Pattern QUOTED = Pattern.compile("\"(?:[^\"\\\\\\n]|\\\\.)*\"|//[^\\n]*");

  static Rejection of(Diag diagnostic, String source) {
    return of(
        source,
        diagnostic.getPosition(),
        diagnostic.getStartPosition(),
        diagnostic.getEndPosition(),
        diagnostic.getCode(),
        // The root bundle is English; that of Locale.ENGLISH falls back to the default locale.
        diagnostic.getMessage(Locale.ROOT));
  }

  /// Returns the compiler's objection to a whole program.
  static Rejection of(Diagnostic<?> diagnostic, String source) {
    return of(
        source,
        diagnostic.getPosition(),
        diagnostic.getStartPosition(),
        diagnostic.getEndPosition(),
        diagnostic.getCode(),
        diagnostic.getMessage(Locale.ROOT));
  }

  private static Rejection of(
      String source, long place, long start, long end, @Nullable String code, String message) {
    int position = inside(place, source);
    return new Rejection(
        source,
        position,
        Math.min(position, inside(start, source)),
        Math.max(position, inside(end, source)),
        Objects.requireNonNullElse(code, ""),
        message);
  }

  private static int inside(long position, String source) {
    return Math.clamp(position, 0, source.length());
  }

  /// Returns true if the snippet is not Java, so that the position says little about the mistake.
  boolean isSyntax() {
    return SYNTAX.matcher(code).matches();
  }

  static boolean isSyntax(Diag diagnostic) {
    return SYNTAX.matcher(Objects.requireNonNullElse(diagnostic.getCode(), "")).matches();
  }

  /// Returns true if a call's arguments have other types or another number than its parameters.
  boolean isCall() {
    return code.startsWith("compiler.err.cant.apply");
  }

  /// Returns true if the error is at a dot or a double colon, which the rejected name follows.
  boolean isMember() {
    return position < source.length() && ".:".indexOf(source.charAt(position)) >= 0;
  }

  /// Returns the rejected name's range: from after a dot to its end.
  int[] nameRange() {
    int from = position;
    while (from < source.length() && !Character.isJavaIdentifierStart(source.charAt(from))) {
      from++;
    }
    int to = from;
    while (to < source.length() && Character.isJavaIdentifierPart(source.charAt(to))) {
      to++;
    }
    return new int[] {from, to};
  }

  /// Returns the source with quoted text and comments blanked.
  static String withoutQuotes(String source) {
    return QUOTED
        .matcher(source)
        .replaceAll(
            quoted ->
                quoted.group().length() < 2 || quoted.group().startsWith("/")
                    ? " ".repeat(quoted.group().length())
                    : "\"" + " ".repeat(quoted.group().length() - 2) + "\"");
  }

  /// Returns the source from `from` on up to the bracket that ends a call's arguments; `from` if no
  /// call follows.
  int afterArguments(int from) {
    var code = withoutQuotes(source);
    if (from >= code.length() || code.charAt(from) != '(') {
      return from;
    }
    int open = 0;
    for (int index = from; index < code.length(); index++) {
      open += opens(code.charAt(index));
      if (open == 0) {
        return index + 1;
      }
    }
    return code.length();
  }

  /// Returns begin and end of each argument of the call that begins at a bracket.
  List<int[]> arguments(int bracket) {
    var code = withoutQuotes(source);
    var found = new ArrayList<int[]>();
    int end = afterArguments(bracket) - 1;
    int open = 0;
    int begin = bracket + 1;
    for (int index = bracket + 1; index <= end; index++) {
      if (index == end || (open == 0 && code.charAt(index) == ',')) {
        int from = begin;
        while (from < index && Character.isWhitespace(source.charAt(from))) {
          from++;
        }
        if (from < index) {
          found.add(
              new int[] {from, from + source.substring(from, index).stripTrailing().length()});
        }
        begin = index + 1;
      } else {
        open += opens(code.charAt(index));
      }
    }
    return found;
  }

  private static int opens(char character) {
    return "([{".indexOf(character) >= 0 ? 1 : ")]}".indexOf(character) >= 0 ? -1 : 0;
  }
}
