package braid.launcher.editing;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// A signature of JShell in readable form: `int Math.max(int a, int b)`, `DType.BF16`,
/// `word:java.lang.String`.
record Signature(String raw) {
  private static final Pattern PACKAGE = Pattern.compile("\\b(?:[a-z_][\\w$]*\\.)+(?=[A-Z])");
  private static final Pattern TYPE_NAME = Pattern.compile("[\\w.$]*[A-Z][\\w$]*");
  private static final Pattern TYPE_ARGUMENTS = Pattern.compile("<[^<>]*>");
  private static final Pattern OWN_TYPE_PARAMETERS = Pattern.compile("\\.<[^<>]*>");
  private static final Pattern ARRAY = Pattern.compile("\\s*\\[\\]");

  /// Returns the displayed form, without packages and without the components that JShell adds to a
  /// mentioned record.
  String shown() {
    var text = withoutHeaders(raw);
    int colon = text.lastIndexOf(':');
    if (colon > 0 && !text.contains("(")) {
      text = text.substring(colon + 1).strip() + " " + text.substring(0, colon);
    }
    return OWN_TYPE_PARAMETERS.matcher(PACKAGE.matcher(text).replaceAll("")).replaceAll(".");
  }

  /// Removes every parenthesized part except the last.
  private static String withoutHeaders(String text) {
    var kept = text;
    while (true) {
      int open = kept.indexOf('(');
      int close = open < 0 ? -1 : closing(kept, open);
      if (close < 0 || close + 1 >= kept.length() || !".(<".contains("" + kept.charAt(close + 1))) {
        return kept;
      }
      kept = kept.substring(0, open) + kept.substring(close + 1);
    }
  }

  private static int closing(String text, int open) {
    int depth = 0;
    for (int index = open; index < text.length(); index++) {
      depth += text.charAt(index) == '(' ? 1 : text.charAt(index) == ')' ? -1 : 0;
      if (depth == 0) {
        return index;
      }
    }
    return -1;
  }

  /// Returns `Outer.Inner.name(Type,Type)`, without packages and type arguments; for a type, its
  /// name.
  String key() {
    var text = withoutTypeArguments(shown());
    int open = text.indexOf('(');
    if (open < 0) {
      return text.substring(text.lastIndexOf(' ') + 1);
    }
    var head = text.substring(0, open).strip();
    var name = head.substring(head.lastIndexOf(' ') + 1);
    if (raw.startsWith("braid.")) {
      return name; // a record: its components are its header
    }
    var inside = text.substring(open + 1, Math.max(open + 1, text.lastIndexOf(')')));
    var types = new ArrayList<String>();
    for (var parameter : inside.split(",", -1)) {
      var written = parameter.strip();
      int space = written.lastIndexOf(' ');
      if (!written.isEmpty()) {
        types.add(space < 0 ? written : written.substring(0, space));
      }
    }
    return key(name, types);
  }

  static String key(String name, List<String> types) {
    return types.stream()
        .map(Signature::withoutTypeArguments)
        .map(type -> PACKAGE.matcher(type).replaceAll("").replace("...", "[]"))
        .map(type -> ARRAY.matcher(type).replaceAll("[]"))
        .collect(Collectors.joining(",", name + "(", ")"));
  }

  /// Returns the name of the declaring file.
  String outermost() {
    var key = key();
    int end = key.indexOf('(');
    var name = end < 0 ? key : key.substring(0, end);
    int dot = name.indexOf('.');
    return dot < 0 ? name : name.substring(0, dot);
  }

  /// Returns the full name of a variable's type, without type arguments; empty for arrays, numbers
  /// and everything that is no variable.
  Optional<String> type() {
    int colon = raw.lastIndexOf(':');
    var type = colon < 0 ? "" : withoutTypeArguments(raw.substring(colon + 1)).strip();
    return TYPE_NAME.matcher(type).matches() ? Optional.of(type) : Optional.empty();
  }

  /// Returns the last part of the name, without parameters.
  String name() {
    var key = key();
    var name = key.contains("(") ? key.substring(0, key.indexOf('(')) : key;
    return name.substring(name.lastIndexOf('.') + 1);
  }

  private static String withoutTypeArguments(String text) {
    var before = text;
    while (true) {
      var after = TYPE_ARGUMENTS.matcher(before).replaceAll("");
      if (after.equals(before)) {
        return after;
      }
      before = after;
    }
  }
}
