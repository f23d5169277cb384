package braid.launcher.editing;

import braid.launcher.editing.Completions.Item;
import braid.launcher.editing.Completions.ItemKind;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/// Names that a cell declares before the cursor: parameters and variables of the current snippet,
/// and declarations that the compiler learns only when the cell runs.
final class LocalNames {
  private static final String NAME = "[\\p{Alpha}_$][\\w$]*";
  private static final Pattern VARIABLE =
      Pattern.compile(
          "\\b("
              + NAME
              + ")(?:<[^;(){}]*>)?(?:\\[\\])*\\s+(?:\\.\\.\\.)?("
              + NAME
              + ")\\s*[=;:,)]");
  private static final Pattern LAMBDA = Pattern.compile("(" + NAME + ")\\s*->");
  private static final Pattern LAMBDA_LIST = Pattern.compile("\\(([\\w$,\\s]+)\\)\\s*->");
  private static final Pattern METHOD =
      Pattern.compile(
          "\\b("
              + NAME
              + ")(?:<[^;(){}]*>)?(?:\\[\\])*\\s+("
              + NAME
              + ")\\s*\\([^(){};]*\\)\\s*\\{");
  private static final Pattern TYPE =
      Pattern.compile("\\b(?:class|record|enum|interface)\\s+(" + NAME + ")");

  /// Words that may precede a name without being its type.
  private static final Set<String> NO_TYPES =
      Set.of(
          "assert",
          "case",
          "else",
          "extends",
          "goto",
          "implements",
          "import",
          "instanceof",
          "new",
          "package",
          "return",
          "throw",
          "throws",
          "yield");

  private LocalNames() {}

  static List<Item> of(ScannedCode scanned) {
    var code = scanned.code();
    var found = new LinkedHashSet<Item>();
    TYPE.matcher(code).results().forEach(m -> found.add(new Item(m.group(1), ItemKind.CLASS)));
    METHOD
        .matcher(code)
        .results()
        .filter(m -> !NO_TYPES.contains(m.group(1)))
        .forEach(m -> found.add(new Item(m.group(2) + "(", ItemKind.FUNCTION)));
    VARIABLE
        .matcher(code)
        .results()
        .filter(m -> !NO_TYPES.contains(m.group(1)))
        .forEach(m -> found.add(new Item(m.group(2), ItemKind.INSTANCE)));
    LAMBDA.matcher(code).results().forEach(m -> found.add(new Item(m.group(1), ItemKind.INSTANCE)));
    LAMBDA_LIST
        .matcher(code)
        .results()
        .flatMap(m -> Pattern.compile(",").splitAsStream(m.group(1)))
        .forEach(name -> found.add(new Item(name.strip(), ItemKind.INSTANCE)));
    return List.copyOf(found);
  }
}
