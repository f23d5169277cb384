package braid.launcher;

import java.util.Collection;
import java.util.TreeMap;

/// Suggests the closest name to a mistyped one.
public final class Nearest {
  private Nearest() {}

  /// Returns the name with the smallest edit distance; the first one if several are equally close.
  ///
  /// @param names at least one
  public static String to(String mistyped, Collection<String> names) {
    var byDistance = new TreeMap<Integer, String>();
    names.forEach(name -> byDistance.putIfAbsent(distance(mistyped, name), name));
    return byDistance.firstEntry().getValue();
  }

  /// Returns the edit distance. `row[j]` is the distance between the processed part of `a` and the
  /// first `j` letters of `b`.
  private static int distance(String a, String b) {
    var row = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }
}
