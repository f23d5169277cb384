package braid.natives.load;

import java.util.Arrays;
import java.util.Optional;
import java.util.regex.Pattern;

/// Version of a file, package or folder. Only common components are compared: a folder's 13.0
/// equals a file's 13.0.96.
record Version(String text) {
  private static final Pattern NUMBERS = Pattern.compile("\\d{1,9}(\\.\\d{1,9})*");

  static Optional<Version> of(String text) {
    return NUMBERS.matcher(text).matches() ? Optional.of(new Version(text)) : Optional.empty();
  }

  boolean newerThan(Version other) {
    int[] ours = numbers();
    int[] others = other.numbers();
    for (int i = 0; i < Math.min(ours.length, others.length); i++) {
      if (ours[i] != others[i]) {
        return ours[i] > others[i];
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
