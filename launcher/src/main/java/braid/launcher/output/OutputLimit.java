package braid.launcher.output;

import braid.model.BraidException;
import java.util.Locale;
import java.util.regex.Pattern;

/// Output limit of one cell, in bytes of UTF-8. Three quarters are for the first part, which is
/// shown immediately; a quarter is for the last part, which is shown when the cell ends. The part
/// between them is counted and omitted.
///
/// Text and displays share the limit. A display counts as a sixteenth of its bytes, at least 1 KiB:
/// charts are large, but clients are slowed by many displays rather than by large ones. Results and
/// failures do not count.
public record OutputLimit(long bytes) {
  public static final String OPTION = "--output-limit";
  public static final OutputLimit DEFAULT = new OutputLimit(4 << 20);

  private static final long MIN_BYTES = 16 << 10;
  private static final long MAX_BYTES = 1 << 30;

  /// The largest limit, for output that is read by a program.
  public static final OutputLimit MOST = new OutputLimit(MAX_BYTES);

  private static final Pattern FORM = Pattern.compile("([0-9]{1,12}) *(|B|[KMG]i?B|[kmgKMG])");

  public OutputLimit {
    if (bytes < MIN_BYTES || bytes > MAX_BYTES) {
      throw new BraidException(
          "%s must be 16KiB to 1GiB but was %d bytes; the default is 4MiB"
              .formatted(OPTION, bytes));
    }
  }

  /// Parses `4MiB`, `500KB`, `64k` or a number of bytes.
  public static OutputLimit parse(String text) {
    var form = FORM.matcher(text.strip());
    if (!form.matches()) {
      throw new BraidException(
          "%s must be a number of bytes such as 500KB or 4MiB but was %s; the default is 4MiB"
              .formatted(OPTION, text));
    }
    var unit = form.group(2);
    long base = unit.endsWith("B") && !unit.endsWith("iB") ? 1000 : 1024;
    int power = unit.isEmpty() ? 0 : "BKMG".indexOf(unit.toUpperCase(Locale.ROOT).charAt(0));
    long bytes = Long.parseLong(form.group(1));
    for (int i = 0; i < power; i++) {
      bytes *= base;
    }
    return new OutputLimit(bytes);
  }

  /// Share of the first part.
  long first() {
    return bytes - last();
  }

  /// Share of the last part.
  long last() {
    return bytes / 4;
  }

  /// Returns a form that can be parsed again.
  @Override
  public String toString() {
    var units = new String[] {"", "KiB", "MiB", "GiB"};
    long left = bytes;
    int unit = 0;
    while (left % 1024 == 0 && unit < units.length - 1) {
      left /= 1024;
      unit++;
    }
    return left + units[unit];
  }
}
