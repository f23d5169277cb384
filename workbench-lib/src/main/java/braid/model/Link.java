package braid.model;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.regex.Pattern;

/// The link that the host backend simulates: a rank receives one copy at a time, and every copy
/// takes `latency` and then its bytes at `bytesPerSecond`. Peers that read from a rank cost it
/// nothing, as with a copy engine that pulls.
///
/// Written `0.3GB/s,20us`, see [#parse]. A link without limits is `unlimited`.
public record Link(double bytesPerSecond, long latencyNanos) {
  /// Default link: in the notebooks' problem, on two cores with four ranks, communication takes
  /// about half as long as the GEMM. Link and GEMM of a GPU are both about a thousand times faster.
  public static final Link DEFAULT = new Link(0.25e9, 20_000);

  /// Bytes arrive as fast as the machine can copy them.
  public static final Link UNLIMITED = new Link(Double.POSITIVE_INFINITY, 0);

  private static final Pattern FORM =
      Pattern.compile(
          "([0-9]+|[0-9]*\\.[0-9]+) *([KMGT]?)(B/s|(?<=[KMGT])iB/s|b/s|bps)"
              + "(?: *, *([0-9]+|[0-9]*\\.[0-9]+) *(ns|us|\u00b5s|\u03bcs|ms|s))?");

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

  /// Reads `0.3GB/s,20us`, `2GB/s` or `unlimited`. Bandwidths are in bytes (`GB/s`, `GiB/s`) or
  /// bits (`Gb/s`, `Gbps`), with K, M, G or T; latencies in `ns`, `us`, `µs`, `ms` or `s`. Case
  /// matters: one `B` is eight `b`.
  public static Link parse(String text) {
    var stripped = text.strip();
    if (stripped.equalsIgnoreCase("unlimited")) {
      return UNLIMITED;
    }
    var form = FORM.matcher(stripped);
    if (!form.matches()) {
      throw malformed(text);
    }
    var bandwidth = new BigDecimal(form.group(1)).multiply(bytes(form.group(2), form.group(3)));
    var latency =
        form.group(4) == null
            ? BigDecimal.ZERO
            : new BigDecimal(form.group(4)).multiply(nanos(form.group(5)));
    if (latency.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
      throw malformed(text);
    }
    return new Link(
        bandwidth.doubleValue(), latency.setScale(0, RoundingMode.HALF_UP).longValueExact());
  }

  private static BraidException malformed(String text) {
    return new BraidException(
        "a link must be written bandwidth,latency or unlimited but was %s; bandwidth in GB/s, GiB/s, Gb/s or Gbps (also K, M, T), latency in ns, us, µs, ms or s, for example 0.25GB/s,20us"
            .formatted(text));
  }

  private static BigDecimal bytes(String prefix, String unit) {
    int power = prefix.isEmpty() ? 0 : "KMGT".indexOf(prefix) + 1;
    var bytes = BigDecimal.valueOf(unit.equals("iB/s") ? 1024 : 1000).pow(power);
    return unit.startsWith("b") ? bytes.divide(BigDecimal.valueOf(Byte.SIZE)) : bytes;
  }

  private static BigDecimal nanos(String unit) {
    return BigDecimal.valueOf(
        switch (unit) {
          case "ns" -> 1;
          case "ms" -> 1_000_000;
          case "s" -> 1_000_000_000;
          default -> 1_000;
        });
  }

  /// Returns the nanoseconds that one copy of that number of bytes occupies the link; the largest
  /// number for a copy that takes centuries.
  public long nanos(long bytes) {
    if (bytes < 0) {
      throw new BraidException("a copy must have 0 bytes or more but had " + bytes);
    }
    long transfer = Math.round(bytes / bytesPerSecond * 1e9);
    return transfer > Long.MAX_VALUE - latencyNanos ? Long.MAX_VALUE : latencyNanos + transfer;
  }

  /// Returns the form that [#parse] reads.
  @Override
  public String toString() {
    if (Double.isInfinite(bytesPerSecond)) {
      return "unlimited";
    }
    var bandwidth =
        bytesPerSecond >= 1e9
            ? number(bytesPerSecond, 9) + "GB/s"
            : number(bytesPerSecond, 6) + "MB/s";
    return latencyNanos == 0
        ? bandwidth
        : latencyNanos % 1000 == 0
            ? bandwidth + "," + latencyNanos / 1000 + "us"
            : bandwidth + "," + latencyNanos + "ns";
  }

  private static String number(double value, int digits) {
    return BigDecimal.valueOf(value).movePointLeft(digits).stripTrailingZeros().toPlainString();
  }
}
