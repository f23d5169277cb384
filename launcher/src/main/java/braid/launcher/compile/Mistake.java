package braid.launcher.compile;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// A habit of another language or library, or a common slip, with its remedy. `mistakes.txt` is the
/// table of all.
///
/// @param error found in the compiler's message; null for any
/// @param text found in the line of the error, or null
/// @param expression matches the expression that has the wrong type, or null
/// @param remark the remedy in words; empty if only code helps
/// @param codes the remedy as code, the likeliest first
record Mistake(
    @Nullable Pattern error,
    @Nullable Pattern text,
    @Nullable Pattern expression,
    String remark,
    List<String> codes) {
  static final List<Mistake> ALL = read();

  private static final Pattern REFERENCE = Pattern.compile("\\$(\\d)");
  private static final Pattern PRIMARY =
      Pattern.compile("[\\w$]+(?:\\.[\\w$]+|\\([^()]*\\)|\\[[^\\[\\]]*\\])*|\"[^\"]*\"|'[^']*'");

  private static List<Mistake> read() {
    try (var table = Mistake.class.getResourceAsStream("mistakes.txt")) {
      if (table == null) {
        throw new IllegalStateException("mistakes.txt is not beside " + Mistake.class.getName());
      }
      var text = new String(table.readAllBytes(), StandardCharsets.UTF_8);
      return Arrays.stream(text.split("\n\\s*\n", -1))
          .map(block -> block.lines().filter(line -> !line.startsWith("#")).toList())
          .filter(block -> !block.isEmpty())
          .map(Mistake::of)
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException("the table of mistakes could not be read", e);
    }
  }

  private static Mistake of(List<String> block) {
    Pattern error = null;
    Pattern text = null;
    Pattern expression = null;
    var remark = "";
    var codes = new ArrayList<String>();
    for (var line : block) {
      var parts = line.split(":\\s+", 2);
      switch (parts[0]) {
        case "error" -> error = pattern(parts[1]);
        case "text" -> text = pattern(parts[1]);
        case "expression" -> expression = pattern(parts[1]);
        case "say" -> remark = parts[1];
        case "code" -> codes.add(parts[1]);
        default -> throw new IllegalStateException("mistakes.txt has an unknown line: " + line);
      }
    }
    return new Mistake(error, text, expression, remark, codes);
  }

  /// Expands the table's own abbreviations: an operand, a name, and arguments in brackets.
  private static Pattern pattern(String written) {
    var inBrackets = "(?:[^()]|\\((?:[^()]|\\([^()]*\\))*\\))*";
    var operand = "[\\w$]+(?:\\.[\\w$]+|\\(" + inBrackets + "\\)|\\[[^\\[\\]]*\\])*|\"[^\"]*\"";
    int number = 0;
    var expanded = written.replace("<name>", "([\\p{Alpha}_$][\\w$]*)");
    while (expanded.contains("<args>") || expanded.contains("<value>")) {
      var group = "(?<x" + number++ + ">";
      expanded =
          expanded.contains("<args>")
              ? replaceFirst(expanded, "<args>", group + inBrackets + ")")
              : replaceFirst(expanded, "<value>", group + operand + ")");
    }
    return Pattern.compile(expanded);
  }

  private static String replaceFirst(String text, String part, String replacement) {
    return text.replaceFirst(Pattern.quote(part), Matcher.quoteReplacement(replacement));
  }

  /// Returns true if a match explains an error at a position of the line: the error is within the
  /// match, and an unknown name is not within an operand or an argument, whose mistakes are others.
  static boolean explains(MatchResult match, int position, Rejection rejection) {
    return match.start() <= position
        && position < match.end()
        && (!rejection.message().contains("symbol:")
            || match.namedGroups().values().stream()
                .noneMatch(group -> match.start(group) <= position && position < match.end(group)));
  }

  boolean isOf(Rejection rejection) {
    return error == null || error.matcher(rejection.message()).find();
  }

  /// Returns the matches in a line of source, outside of quoted text.
  static List<Matcher> matches(Pattern pattern, String line) {
    var matcher = pattern.matcher(Rejection.withoutQuotes(line));
    var found = new ArrayList<Matcher>();
    int from = 0;
    while (from <= line.length() && matcher.find(from)) {
      from = Math.max(matcher.end(), matcher.start() + 1);
      var match = pattern.matcher(Rejection.withoutQuotes(line));
      if (match.find(matcher.start())) {
        found.add(match);
      }
    }
    return found;
  }

  /// Replaces references `$1` by the groups of a match, whose text is in the line. A group that is
  /// no operand by itself is put in brackets if it is beside a dot.
  static String filled(String template, Matcher match, String line) {
    return REFERENCE
        .matcher(template)
        .replaceAll(
            reference -> {
              int group = Integer.parseInt(reference.group(1));
              var value =
                  group > match.groupCount() || match.start(group) < 0
                      ? ""
                      : line.substring(match.start(group), match.end(group)).strip();
              boolean isOperand =
                  template.startsWith(".", reference.end())
                      || template.startsWith(") ", reference.start() - 2)
                      || template.startsWith("!", reference.start() - 1);
              return Matcher.quoteReplacement(
                  isOperand && !value.isEmpty() && !PRIMARY.matcher(value).matches()
                      ? "(" + value + ")"
                      : value);
            });
  }

  Optional<String> remark(Matcher match, String line) {
    return remark.isEmpty() ? Optional.empty() : Optional.of(filled(remark, match, line));
  }
}
