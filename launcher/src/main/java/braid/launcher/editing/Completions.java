package braid.launcher.editing;

import java.util.List;

/// What may stand between `start` and `end` of the source instead of what stands there, the
/// likeliest first.
public record Completions(List<Item> items, int start, int end) {
  /// What a suggestion is; front ends show an icon for each, by Jupyter's names of them.
  public enum Kind {
    CLASS,
    FUNCTION,
    INSTANCE,
    KEYWORD,
    MAGIC,
    MODULE,
    PATH
  }

  public record Item(String text, Kind kind) {}

  static Completions none(int cursor) {
    return new Completions(List.of(), cursor, cursor);
  }

  public List<String> replacements() {
    return items.stream().map(Item::text).toList();
  }
}
