package braid.internal.report.value;

import braid.model.Estimate;
import java.util.Locale;

/// Percentages in sentences, tables and charts. A difference has no more digits than its interval
/// supports.
public final class Percent {
  /// Width of an interval, as a share, from which its percentages are whole.
  private static final double WIDE = 0.05;

  private Percent() {}

  /// Returns a share as "12.3%".
  public static String of(double share) {
    return of(share, 1) + "%";
  }

  /// Returns a share as "12.3%", or as "12%" if that of the estimate is whole.
  public static String of(double share, Estimate estimate) {
    return of(share, decimals(estimate)) + "%";
  }

  private static String of(double share, int decimals) {
    return String.format(Locale.ROOT, "%." + decimals + "f", 100 * share);
  }

  /// Returns the difference with its sign, "−12.3%", "+3%" or "0%".
  public static String change(Estimate change) {
    return signed(change.value(), decimals(change)) + "%";
  }

  /// Returns the ends of the interval, "−14.1 to −10.0".
  public static String interval(Estimate change) {
    int decimals = decimals(change);
    return signed(change.low(), decimals) + " to " + signed(change.high(), decimals);
  }

  private static int decimals(Estimate estimate) {
    return estimate.high() - estimate.low() >= WIDE ? 0 : 1;
  }

  private static String signed(double share, int decimals) {
    var digits = of(Math.abs(share), decimals);
    boolean none = digits.chars().allMatch(c -> c == '0' || c == '.');
    return none ? "0" : (share < 0 ? "−" : "+") + digits;
  }
}
