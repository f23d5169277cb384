package braid.launcher.editing;

import braid.launcher.editing.Completions.Item;
import braid.launcher.editing.Completions.ItemKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.Suggestion;

/// Completion of Java code: the compiler's suggestions, and names that it omits.
final class JavaCompletion {
  private static final Pattern IMPORT =
      Pattern.compile("(?s).*\\bimport\\s+(?:static\\s+)?([\\w.$]*)");
  private static final Pattern CONSTANT = Pattern.compile("[A-Z][A-Z0-9_$]*");

  /// Text after which an identifier is a member, or not an expression.
  private static final Pattern AFTER_DOT = Pattern.compile("(?s).*(?:\\.|::)\\s*");

  private static final Pattern AFTER_NEW = Pattern.compile("(?s).*\\bnew\\s+");

  private static final List<String> KEYWORDS =
      List.of(
          "abstract",
          "assert",
          "boolean",
          "break",
          "byte",
          "case",
          "catch",
          "char",
          "class",
          "continue",
          "default",
          "double",
          "else",
          "enum",
          "extends",
          "false",
          "final",
          "finally",
          "float",
          "for",
          "if",
          "implements",
          "import",
          "instanceof",
          "int",
          "interface",
          "long",
          "new",
          "null",
          "permits",
          "private",
          "protected",
          "public",
          "record",
          "return",
          "sealed",
          "short",
          "static",
          "super",
          "switch",
          "synchronized",
          "this",
          "throw",
          "throws",
          "true",
          "try",
          "var",
          "void",
          "while",
          "yield");

  private final SourceCodeAnalysis analysis;

  JavaCompletion(SourceCodeAnalysis analysis) {
    this.analysis = analysis;
  }

  Completions complete(String source, int cursor) {
    var text = CellText.withoutMagics(source.substring(0, cursor));
    var scanned = ScannedCode.of(text);
    if (!scanned.inCode()) {
      return Completions.none(cursor);
    }
    int start = cursor;
    while (start > 0 && Character.isJavaIdentifierPart(source.charAt(start - 1))) {
      start--;
    }
    var prefix = source.substring(start, cursor);
    var before = scanned.code().substring(0, start);
    var items = new LinkedHashMap<String, Item>();
    all(source, cursor, prefix, before, scanned)
        .filter(item -> item.text().startsWith(prefix) && !item.text().contains("$JShell$"))
        .forEach(item -> items.putIfAbsent(item.text(), item));
    return new Completions(fitting(items.values().stream(), source, cursor), start, cursor);
  }

  /// Removes brackets from suggestions if the source already has one.
  private static List<Item> fitting(Stream<Item> items, String source, int cursor) {
    if (!source.startsWith("(", cursor)) {
      return items.toList();
    }
    return items
        .map(item -> new Item(item.text().replaceFirst("\\(\\)?$", ""), item.kind()))
        .distinct()
        .toList();
  }

  private Stream<Item> all(
      String source, int cursor, String prefix, String before, ScannedCode scanned) {
    var line = before.substring(before.lastIndexOf('\n') + 1);
    var imported = IMPORT.matcher(line.substring(line.lastIndexOf(';') + 1) + prefix);
    if (imported.matches()) {
      return Stream.concat(
          Packages.next(imported.group(1)).stream().map(name -> new Item(name, ItemKind.MODULE)),
          suggested(source, cursor, prefix, true));
    }
    if (AFTER_DOT.matcher(before).matches()) {
      return suggested(source, cursor, prefix, false);
    }
    if (AFTER_NEW.matcher(before).matches()) {
      return Stream.concat(
          LocalNames.of(scanned).stream()
              .filter(item -> item.kind() == ItemKind.CLASS)
              .map(item -> new Item(item.text() + "(", ItemKind.CLASS)),
          suggested(source, cursor, prefix, false));
    }
    var declared = LocalNames.of(ScannedCode.of(before)).stream();
    var keywords =
        prefix.isEmpty()
            ? Stream.<Item>empty()
            : KEYWORDS.stream().map(word -> new Item(word, ItemKind.KEYWORD));
    return Stream.of(declared, suggested(source, cursor, prefix, false), keywords)
        .flatMap(items -> items);
  }

  /// Returns the compiler's suggestions for the whole cell before the cursor; if there are none,
  /// for the current snippet alone.
  private Stream<Item> suggested(String source, int cursor, String prefix, boolean importing) {
    var cell = CellText.of(source, cursor, analysis);
    List<Suggestion> found = new ArrayList<>();
    if (!cell.before().isEmpty() && !importing) {
      found.addAll(suggestions(cell.joined()));
    }
    if (found.isEmpty()) {
      found.addAll(suggestions(cell.current()));
    }
    return found.stream()
        .sorted((a, b) -> Boolean.compare(b.matchesType(), a.matchesType()))
        .map(Suggestion::continuation)
        .filter(name -> name.startsWith(prefix))
        .map(name -> new Item(name, kind(name)));
  }

  private List<Suggestion> suggestions(String code) {
    return analysis.completionSuggestions(code, code.length(), new int[1]);
  }

  private static ItemKind kind(String suggestion) {
    if (KEYWORDS.contains(suggestion)) {
      return ItemKind.KEYWORD;
    }
    if (Character.isUpperCase(suggestion.charAt(0)) && !CONSTANT.matcher(suggestion).matches()) {
      return ItemKind.CLASS;
    }
    if (suggestion.endsWith("(") || suggestion.endsWith("()")) {
      return ItemKind.FUNCTION;
    }
    return suggestion.endsWith(".*") ? ItemKind.MODULE : ItemKind.INSTANCE;
  }
}
