package braid.schedule.check;

import java.util.regex.Pattern;

/// A mistake at one place.
///
/// @param kind the same for mistakes that one line reports: that differ only in rank, iteration,
///   chunk or the second party
/// @param rank the rank at fault
record Finding(String kind, int rank, String text) {
  private static final Pattern NUMBER = Pattern.compile("\\d+");

  /// Creates a mistake that differs from others of its kind in numbers only.
  Finding(int rank, String text) {
    this(withoutNumbers(text), rank, text);
  }

  static String withoutNumbers(String text) {
    return NUMBER.matcher(text).replaceAll("#");
  }
}
