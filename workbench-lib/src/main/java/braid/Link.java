package braid;

import java.util.Locale;
import java.util.regex.Pattern;

/// The link that the host backend plays: what a rank receives passes it one copy after the other,
/// and every copy takes `latency` and then its bytes at `bytesPerSecond`. What a rank's peers read
/// from it costs it nothing, as with a copy engine that pulls.
///
/// It is written `0.3GB/s,20us`; units are powers of ten. A link without limits is `unlimited`.
public record Link(double bytesPerSecond, long latencyNanos) {
  /// Chosen so that in the notebooks' problem, on a machine of two cores with four ranks, the
  /// communication takes about half as long as the GEMM. A GPU's link is a thousand times faster,
  /// and so is its GEMM.
  public static final Link DEFAULT = new Link(0.25e9, 20_000);

  /// Bytes arrive as fast as the machine can copy them.
  public static final Link UNLIMITED = new Link(Double.POSITIVE_INFINITY, 0);

  private static final Pattern FORM =
      Pattern.compile("([0-9.]+)(B|KB|MB|GB|TB)/S(?:,([0-9.]+)(NS|US|MS|S))?");

  public Link {
    if (!(bytesPerSecond > 0)) {
      throw new BraidException(
          "a link's bandwidth must be more than 0 but was %s bytes/s; for example 0.25GB/s"
              .formatted(bytesPerSecond));
    }
    if (latencyNanos < 0) {
      throw new BraidException(
          "a link's latency must be 0 or more but was %d ns; for example 20us"
              .formatted(latencyNanos));
    }
  }

  /// Reads `0.3GB/s,20us`, `2GB/s` or `unlimited`.
  public static Link parse(String text) {
    var compact = text.replace(" ", "").toUpperCase(Locale.ROOT);
    if (compact.equals("UNLIMITED")) {
      return UNLIMITED;
    }
    var form = FORM.matcher(compact);
    if (form.matches()) {
      try {
        double bandwidth = Double.parseDouble(form.group(1)) * bytes(form.group(2));
        double latency =
            form.group(3) == null ? 0 : Double.parseDouble(form.group(3)) * nanos(form.group(4));
        return new Link(bandwidth, Math.round(latency));
      } catch (NumberFormatException e) {
        throw malformed(text, e);
      }
    }
    throw malformed(text, null);
  }

  private static BraidException malformed(
      String text, @org.jspecify.annotations.Nullable NumberFormatException cause) {
    var message =
        "a link must be written bandwidth,latency or unlimited but was %s; for example 0.25GB/s,20us"
            .formatted(text);
    return cause == null ? new BraidException(message) : new BraidException(message, cause);
  }

  private static double bytes(String unit) {
    return switch (unit) {
      case "B" -> 1;
      case "KB" -> 1e3;
      case "MB" -> 1e6;
      case "GB" -> 1e9;
      case "TB" -> 1e12;
      default -> throw new IllegalArgumentException(unit);
    };
  }

  private static double nanos(String unit) {
    return switch (unit) {
      case "NS" -> 1;
      case "US" -> 1e3;
      case "MS" -> 1e6;
      case "S" -> 1e9;
      default -> throw new IllegalArgumentException(unit);
    };
  }

  /// How long one copy of that many bytes occupies the link.
  public long nanos(long bytes) {
    return latencyNanos + Math.round(bytes / bytesPerSecond * 1e9);
  }

  /// As it can be parsed again.
  @Override
  public String toString() {
    if (Double.isInfinite(bytesPerSecond)) {
      return "unlimited";
    }
    var bandwidth =
        bytesPerSecond >= 1e9
            ? number(bytesPerSecond / 1e9) + "GB/s"
            : number(bytesPerSecond / 1e6) + "MB/s";
    return latencyNanos == 0
        ? bandwidth
        : latencyNanos % 1000 == 0
            ? bandwidth + "," + latencyNanos / 1000 + "us"
            : bandwidth + "," + latencyNanos + "ns";
  }

  private static String number(double value) {
    return value == Math.rint(value) && value < 1e15
        ? Long.toString((long) value)
        : Double.toString(value);
  }
}
