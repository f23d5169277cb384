package braid.model;

import java.util.Locale;

/// Processors that other processes kept busy during a measurement.
///
/// @param others number of processors that others kept busy, on average
/// @param cores number of processors that the ranks might use
/// @param average load average of the minute before the end
public record HostLoad(double others, int cores, double average) {
  /// Processors that others may keep busy: half of one, and a tenth of all.
  private static final double HARMLESS = 0.5;

  private static final double HARMLESS_SHARE = 0.1;

  public HostLoad {
    if (!(others >= 0 && cores >= 1 && average >= 0)) {
      throw new BraidException(
          "a load needs processors kept busy of 0 or more, cores of 1 or more and a load average of 0 or more but has %s, %d and %s"
              .formatted(others, cores, average));
    }
  }

  /// Returns true if others were so busy that the times are in doubt.
  public boolean isHigh() {
    return others > HARMLESS + HARMLESS_SHARE * cores;
  }

  /// Returns, for example, "load 15 on 2 cores: other processes kept 1.6 of them busy".
  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "load %.0f on %d cores: other processes kept %.1f of them busy",
        average,
        cores,
        others);
  }
}
