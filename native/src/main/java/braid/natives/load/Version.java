package braid.natives.load;

import java.util.Arrays;
import java.util.Optional;
import java.util.regex.Pattern;

/// A version as a file, a package or a folder writes it. Two of them differ only where both have a
/// number: a folder's 13.0 is as new as a file's 13.0.96, because nobody can say otherwise.
record Version(String text) {
  private static final Pattern NUMBERS = Pattern.compile("\\d{1,9}(\\.\\d{1,9})*");

  static Optional<Version> of(String text) {
    return NUMBERS.matcher(text).matches() ? Optional.of(new Version(text)) : Optional.empty();
  }

  boolean newerThan(Version other) {
    int[] mine = numbers();
    int[] theirs = other.numbers();
    for (int i = 0; i < Math.min(mine.length, theirs.length); i++) {
      if (mine[i] != theirs[i]) {
        return mine[i] > theirs[i];
      }
    }
    return false;
  }

  int first() {
    return numbers()[0];
  }

  private int[] numbers() {
    return Arrays.stream(text.split("\\.", -1)).mapToInt(Integer::parseInt).toArray();
  }
}
