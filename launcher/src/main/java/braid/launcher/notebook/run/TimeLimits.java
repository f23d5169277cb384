package braid.launcher.notebook.run;

import braid.model.BraidException;
import java.time.Duration;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Time limits of a cell and of a whole run. The run's clock starts at construction.
public final class TimeLimits {
  private static final Pattern DURATION = Pattern.compile("([1-9][0-9]{0,4})([smh]?)");

  private final Optional<Duration> cell;
  private final Optional<Duration> total;
  private final long startNanos = System.nanoTime();

  public TimeLimits(Optional<Duration> cell, Optional<Duration> total) {
    this.cell = cell;
    this.total = total;
  }

  /// Parses the limits as the user wrote them.
  ///
  /// @throws BraidException if one is not a positive number of seconds
  public static TimeLimits of(@Nullable String timeout, @Nullable String cellTimeout) {
    return new TimeLimits(parse("--cell-timeout", cellTimeout), parse("--timeout", timeout));
  }

  private static Optional<Duration> parse(String option, @Nullable String text) {
    if (text == null) {
      return Optional.empty();
    }
    double seconds;
    try {
      seconds = Double.parseDouble(text);
    } catch (NumberFormatException e) {
      seconds = Double.NaN;
    }
    if (!(seconds > 0 && seconds < Integer.MAX_VALUE)) {
      throw new BraidException(
          "%s must be a positive number of seconds but was %s; try %s 600"
              .formatted(option, text, option));
    }
    return Optional.of(Duration.ofMillis((long) Math.ceil(seconds * 1e3)));
  }

  /// Parses a duration of whole seconds, minutes or hours: `600`, `90s`, `10m`, `1h`.
  ///
  /// @param option option with the duration, for messages
  public static Duration duration(String option, String text) {
    var form = DURATION.matcher(text.strip());
    if (!form.matches()) {
      throw new BraidException(
          "%s must be a time of 1 s or more, such as 90s, 10m or 1h, but was %s; try %s 10m"
              .formatted(option, text, option));
    }
    long number = Long.parseLong(form.group(1));
    return switch (form.group(2)) {
      case "m" -> Duration.ofMinutes(number);
      case "h" -> Duration.ofHours(number);
      default -> Duration.ofSeconds(number);
    };
  }

  public static TimeLimits none() {
    return new TimeLimits(Optional.empty(), Optional.empty());
  }

  /// Limit that a cell started now reaches first, and its option.
  record Nearest(Duration left, String option) {}

  Optional<Nearest> nearest() {
    var ofCell = cell.map(limit -> new Nearest(limit, "--cell-timeout " + seconds(limit)));
    var ofRun =
        total.map(
            limit ->
                new Nearest(
                    limit.minusNanos(System.nanoTime() - startNanos),
                    "--timeout " + seconds(limit)));
    if (ofCell.isPresent() && ofRun.isPresent()) {
      return ofCell.get().left().compareTo(ofRun.get().left()) <= 0 ? ofCell : ofRun;
    }
    return ofCell.or(() -> ofRun);
  }

  /// Returns the limit of the whole run, if it is exceeded.
  public Optional<String> over() {
    return total
        .filter(limit -> limit.minusNanos(System.nanoTime() - startNanos).isNegative())
        .map(limit -> "--timeout " + seconds(limit) + " s");
  }

  static String seconds(Duration duration) {
    var seconds = duration.toMillis() / 1e3;
    return seconds == Math.rint(seconds) ? Long.toString((long) seconds) : Double.toString(seconds);
  }
}
