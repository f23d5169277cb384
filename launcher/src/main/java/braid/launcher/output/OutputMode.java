package braid.launcher.output;

import braid.launcher.Nearest;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Selects the displayed output of N ranks. stderr is always shown.
public enum OutputMode {
  /// Every rank's lines, displays and value, each with its rank.
  ALL("every rank's lines, displays and value, each with its rank"),
  /// Output of the lowest rank that runs the cell, as if there were no others.
  FIRST("only the lowest rank's lines, displays and value"),
  /// Rank 0's output, and that of other ranks only if it differs.
  DIFF("rank 0's lines, displays and value, and other ranks' lines and values where they differ");

  private final String shows;

  OutputMode(String shows) {
    this.shows = shows;
  }

  /// Its name in `%output`.
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  public static Optional<OutputMode> of(String word) {
    return Arrays.stream(values()).filter(mode -> mode.word().equals(word)).findFirst();
  }

  /// Returns the mode closest to an invalid one.
  public static String nearest(String word) {
    return Nearest.to(word, List.of("all", "first", "diff"));
  }

  @Override
  public String toString() {
    return word() + ": " + shows;
  }
}
