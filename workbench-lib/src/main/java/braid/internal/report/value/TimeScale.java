package braid.internal.report.value;

import java.util.Locale;

/// Unit of the times in a chart or sentence, chosen by the largest of them.
public enum TimeScale {
  MICROS("µs", 1e3),
  MILLIS("ms", 1e6),
  SECONDS("s", 1e9);

  private static final int MOST_DECIMALS = 12;

  private final String unit;
  private final double nanosPerUnit;

  TimeScale(String unit, double nanosPerUnit) {
    this.unit = unit;
    this.nanosPerUnit = nanosPerUnit;
  }

  public static TimeScale of(double largestNanos) {
    if (largestNanos < MILLIS.nanosPerUnit) {
      return MICROS;
    }
    return largestNanos < 10 * SECONDS.nanosPerUnit ? MILLIS : SECONDS;
  }

  public static TimeScale of(long largestNanos) {
    return of((double) largestNanos);
  }

  public String unit() {
    return unit;
  }

  public double from(double nanos) {
    return nanos / nanosPerUnit;
  }

  public double from(long nanos) {
    return from((double) nanos);
  }

  public static String format(long nanos) {
    return format((double) nanos);
  }

  /// Returns a time with three significant digits, for example "84.1 ms".
  public static String format(double nanos) {
    var scale = of(Math.abs(nanos));
    return digits(scale.from(nanos)) + " " + scale.unit;
  }

  /// Returns at least three significant digits, without an exponent; 0 without decimals.
  public static String digits(double value) {
    double size = Math.abs(value);
    int decimals =
        size == 0 ? 0 : Math.clamp(2 - (long) Math.floor(Math.log10(size)), 0, MOST_DECIMALS);
    return String.format(Locale.ROOT, "%." + decimals + "f", value);
  }

  /// Returns a duration in whole seconds, at least 1: "45 s".
  public static String seconds(double nanos) {
    return String.format(Locale.ROOT, "%,d s", (long) Math.ceil(SECONDS.from(nanos)));
  }

  /// Returns a share as a whole percentage, for example "62%".
  public static String percent(double share) {
    return String.format(Locale.ROOT, "%.0f%%", 100 * share);
  }
}
