package braid.launcher.compile;

import braid.launcher.Nearest;
import braid.launcher.compile.PublicApi.Name;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

/// Names that a mistyped one may mean.
final class Spelling {
  private Spelling() {}

  /// Letters of the shortest name that may be meant by another one.
  private static final int SHORTEST_SIMILAR = 3;

  /// Returns the names that a mistyped one may mean: equal ones but for case and separators, or
  /// else those that differ by few letters.
  static List<String> close(String mistyped, Collection<String> names) {
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
  static String plain(String name) {
    return name.replaceFirst("^(?:get|is|set|of|to|with)(?=[A-Z_])_?", "")
        .replace("_", "")
        .toLowerCase(Locale.ROOT);
  }

  /// Returns the code of the names that are equal but for case and separators.
  static List<String> spelled(String mistyped, List<Name> names) {
    return names.stream()
        .filter(name -> plain(name.simple()).equals(plain(mistyped)))
        .map(Name::written)
        .toList();
  }
}
