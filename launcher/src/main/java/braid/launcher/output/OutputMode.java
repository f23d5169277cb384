package braid.launcher.output;

import braid.launcher.Nearest;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// How much of what N ranks say is shown. What they write to stderr always is.
public enum OutputMode {
  /// Every rank's lines, displays and value, each with its rank.
  ALL("every rank's lines, displays and value, each with its rank"),
  /// The lowest rank's that takes part, as if there were no others.
  FIRST("only the lowest rank's lines, displays and value"),
  /// Rank 0's, and another's only where it differs.
  DIFF("rank 0's lines, displays and value, and other ranks' lines and values where they differ");

  private final String shows;

  OutputMode(String shows) {
    this.shows = shows;
  }

  /// As it is typed.
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  public static Optional<OutputMode> of(String word) {
    return Arrays.stream(values()).filter(mode -> mode.word().equals(word)).findFirst();
  }

  /// The nearest to what somebody typed that is none.
  public static String nearest(String word) {
    return Nearest.to(word, List.of("all", "first", "diff"));
  }

  @Override
  public String toString() {
    return word() + ": " + shows;
  }
}
