package braid.launcher.editing;

import braid.launcher.editing.Completions.Item;
import braid.launcher.editing.Completions.ItemKind;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
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

  private static final Set<String> OF_ENUM = Set.of("valueOf(", "values()");

  private static final Pattern FIRST_PARAMETER = Pattern.compile("[^(]*\\(([\\w.$]+)[ (<].*");

  private static final Set<String> OF_OBJECT =
      Arrays.stream(Object.class.getMethods()).map(Method::getName).collect(Collectors.toSet());

  private static final Pattern LAST_NAME =
      Pattern.compile("(?s).*?((?:[A-Z][\\w$]*\\.)*[A-Z][\\w$]*)");

  private final SourceCodeAnalysis analysis;
  private final Function<String, Optional<Class<?>>> types;

  /// @param types returns the class that a name in a cell means
  JavaCompletion(SourceCodeAnalysis analysis, Function<String, Optional<Class<?>>> types) {
    this.analysis = analysis;
    this.types = types;
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
    var own = items.values().stream().filter(item -> !OF_OBJECT.contains(name(item))).toList();
    var shown = own.isEmpty() ? items.values().stream() : own.stream();
    return new Completions(fitting(shown, source, cursor), start, cursor);
  }

  private static String name(Item item) {
    return item.text().replaceFirst("\\(\\)?$", "");
  }

  /// Returns the place of a suggestion among those that fit equally well: methods that return a
  /// value of the same type come first, which are factories and the calls of a fluent chain, then
  /// other methods; constants come last.
  private static int order(String suggestion, Optional<Class<?>> receiver) {
    return switch (kind(suggestion)) {
      case FUNCTION -> receiver.filter(type -> returnsSame(type, suggestion)).isPresent() ? 0 : 1;
      case INSTANCE -> CONSTANT.matcher(suggestion).matches() ? 4 : 2;
      default -> 3;
    };
  }

  private static boolean returnsSame(Class<?> type, String suggestion) {
    var name = suggestion.substring(0, suggestion.indexOf('('));
    return Arrays.stream(type.getMethods())
        .filter(method -> method.getName().equals(name))
        .anyMatch(
            method ->
                method.getReturnType() == type
                    || method.getReturnType().getEnclosingClass() == type);
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
    var factories = factories(CellText.of(source, cursor, analysis), prefix);
    var declared = LocalNames.of(ScannedCode.of(before)).stream();
    var keywords =
        prefix.isEmpty()
            ? Stream.<Item>empty()
            : KEYWORDS.stream().map(word -> new Item(word, ItemKind.KEYWORD));
    // Those of an enum come from static imports, and which enum's is not to be seen.
    var suggested =
        suggested(source, cursor, prefix, false).filter(item -> !OF_ENUM.contains(item.text()));
    return Stream.of(factories, declared, suggested, keywords).flatMap(items -> items);
  }

  /// Returns the factories of the type that the first argument of a call must have, or of the types
  /// that it permits.
  private Stream<Item> factories(CellText cell, String prefix) {
    var whole = cell.before().isEmpty() ? cell.current() : cell.joined();
    var code = whole.substring(0, whole.length() - prefix.length()).stripTrailing();
    if (!code.endsWith("(")) {
      return Stream.empty();
    }
    return analysis.documentation(code, code.length(), false).stream()
        .map(found -> FIRST_PARAMETER.matcher(new Signature(found.signature()).shown()))
        .filter(Matcher::matches)
        .flatMap(parameter -> types.apply(parameter.group(1)).stream())
        .filter(type -> !type.getPackageName().equals("java.lang"))
        .distinct()
        .flatMap(
            type ->
                type.isSealed() ? Arrays.stream(type.getPermittedSubclasses()) : Stream.of(type))
        .flatMap(
            type ->
                Arrays.stream(type.getMethods())
                    .filter(method -> Modifier.isStatic(method.getModifiers()))
                    .filter(method -> method.getReturnType() == type && !type.isEnum())
                    .sorted(Comparator.comparing(Method::getName))
                    .map(
                        method -> method.getName() + (method.getParameterCount() == 0 ? "()" : "("))
                    .map(call -> new Item(type.getSimpleName() + "." + call, ItemKind.FUNCTION)));
  }

  /// Returns the compiler's suggestions for the whole cell before the cursor; if there are none,
  /// for the current snippet alone.
  private Stream<Item> suggested(String source, int cursor, String prefix, boolean importing) {
    var cell = CellText.of(source, cursor, analysis);
    List<Suggestion> found = new ArrayList<>();
    var receiver = receiver(cell, prefix);
    if (!cell.before().isEmpty() && !importing) {
      found.addAll(suggestions(cell.joined()));
    }
    if (found.isEmpty()) {
      found.addAll(suggestions(cell.current()));
    }
    return found.stream()
        .filter(suggestion -> suggestion.continuation().startsWith(prefix))
        .sorted(
            Comparator.comparing((Suggestion suggestion) -> !suggestion.matchesType())
                .thenComparingInt(suggestion -> order(suggestion.continuation(), receiver)))
        .map(suggestion -> new Item(suggestion.continuation(), kind(suggestion.continuation())));
  }

  /// Returns the class before a dot: that of a value, or the one that is named.
  private Optional<Class<?>> receiver(CellText cell, String prefix) {
    var code = cell.current().substring(0, cell.current().length() - prefix.length());
    var dot = AFTER_DOT.matcher(code);
    if (!dot.matches()) {
      return Optional.empty();
    }
    var before = code.stripTrailing().replaceFirst("(?:\\.|::)$", "");
    var named = LAST_NAME.matcher(before);
    return types
        .apply(named.matches() ? named.group(1) : "")
        .or(() -> types.apply(typeOf(cell, before).replaceAll("<.*|\\[.*", "")));
  }

  /// Returns the type of a variable, which the cell may have declared, or of an expression.
  private String typeOf(CellText cell, String expression) {
    var whole = cell.before().isEmpty() ? cell.current() : cell.joined();
    var code = whole.substring(0, whole.length() - cell.current().length()) + expression;
    return analysis.documentation(code, code.length(), false).stream()
        .flatMap(found -> new Signature(found.signature()).type().stream())
        .findFirst()
        .or(() -> Optional.ofNullable(analysis.analyzeType(expression, expression.length())))
        .orElse("");
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
