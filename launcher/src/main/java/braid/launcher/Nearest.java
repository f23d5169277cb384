package braid.launcher;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;

/// Suggests the closest name to a mistyped one.
public final class Nearest {
  private static final int LETTERS_PER_EDIT = 4;

  private Nearest() {}

  /// Returns the name with the smallest edit distance; the first one if several are equally close.
  ///
  /// @param names at least one
  public static String to(String mistyped, Collection<String> names) {
    var byDistance = new TreeMap<Integer, String>();
    names.forEach(name -> byDistance.putIfAbsent(distance(mistyped, name), name));
    return byDistance.firstEntry().getValue();
  }

  /// Returns the names, the closest first; equally close ones stay in order.
  public static List<String> sorted(String mistyped, Collection<String> names) {
    return names.stream()
        .sorted(Comparator.comparingInt(name -> distance(mistyped, name)))
        .toList();
  }

  /// Returns the names that differ from the mistyped one by few edits, one in four letters, case
  /// aside: those with the fewest. Empty if none is close.
  public static List<String> close(String mistyped, Collection<String> names) {
    var lower = mistyped.toLowerCase(Locale.ROOT);
    var byDistance = new TreeMap<Integer, List<String>>();
    for (var name : names) {
      int distance = distance(lower, name.toLowerCase(Locale.ROOT));
      if (distance <= (mistyped.length() + LETTERS_PER_EDIT / 2) / LETTERS_PER_EDIT) {
        byDistance.computeIfAbsent(distance, _ -> new ArrayList<>()).add(name);
      }
    }
    return byDistance.isEmpty() ? List.of() : byDistance.firstEntry().getValue();
  }

  /// Returns the number of edits between two names: a letter more, less or other, or two swapped.
  private static int distance(String a, String b) {
    var edits = new int[a.length() + 1][b.length() + 1];
    for (int i = 0; i <= a.length(); i++) {
      for (int j = 0; j <= b.length(); j++) {
        if (i == 0 || j == 0) {
          edits[i][j] = i + j;
          continue;
        }
        int replaced = edits[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        edits[i][j] = Math.min(replaced, 1 + Math.min(edits[i - 1][j], edits[i][j - 1]));
        if (i > 1
            && j > 1
            && a.charAt(i - 1) == b.charAt(j - 2)
            && a.charAt(i - 2) == b.charAt(j - 1)) {
          edits[i][j] = Math.min(edits[i][j], edits[i - 2][j - 2] + 1);
        }
      }
    }
    return edits[a.length()][b.length()];
  }
}
