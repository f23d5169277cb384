package braid.launcher.editing;

import java.util.List;

/// Suggestions that may replace the source between `start` and `end`, the likeliest first.
public record Completions(List<Item> items, int start, int end) {
  /// Kinds of suggestions by Jupyter's names; front ends show an icon for each.
  public enum ItemKind {
    CLASS,
    FUNCTION,
    INSTANCE,
    KEYWORD,
    MAGIC,
    MODULE,
    PATH
  }

  public record Item(String text, ItemKind kind) {}

  static Completions none(int cursor) {
    return new Completions(List.of(), cursor, cursor);
  }

  public List<String> replacements() {
    return items.stream().map(Item::text).toList();
  }
}
