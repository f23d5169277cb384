package braid.launcher.notebook.run;

import braid.model.BraidException;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Time limits of a cell and of a whole run. The run's clock starts at construction.
public final class TimeLimits {
  private static final Pattern DURATION = Pattern.compile("([0-9]{1,6}(?:\\.[0-9]{1,6})?)([smh]?)");
  private static final int SECONDS_PER_MINUTE = 60;
  private static final int MILLIS_PER_SECOND = 1000;

  /// Time for an interrupted cell to stop before its ranks are ended: a tenth of the limit that it
  /// has reached, within these bounds. Ranks of a busy machine need the shortest one.
  static final Duration SHORTEST_GRACE = Duration.ofSeconds(3);

  static final Duration LONGEST_GRACE = Duration.ofSeconds(10);
  private static final int LIMIT_PER_GRACE = 10;

  private final Optional<Duration> cell;
  private final Optional<Duration> total;
  private final long startNanos = System.nanoTime();

  public TimeLimits(Optional<Duration> cell, Optional<Duration> total) {
    this.cell = cell;
    this.total = total;
  }

  /// Parses the limits as the user wrote them: in the forms of [#duration], also parts of a second.
  ///
  /// @throws BraidException if one is no time
  public static TimeLimits of(@Nullable String timeout, @Nullable String cellTimeout) {
    return new TimeLimits(
        Optional.ofNullable(cellTimeout).map(text -> parse("--cell-timeout", text, 1)),
        Optional.ofNullable(timeout).map(text -> parse("--timeout", text, 1)));
  }

  /// Parses a duration of whole seconds, in seconds, minutes or hours: `600`, `90s`, `10m`, `1h`.
  ///
  /// @param option option with the duration, for messages
  public static Duration duration(String option, String text) {
    return parse(option, text, MILLIS_PER_SECOND);
  }

  /// @param unitMillis smallest time, of which others are a multiple
  private static Duration parse(String option, String text, long unitMillis) {
    var form = DURATION.matcher(text.strip());
    double millis = 0;
    if (form.matches()) {
      double seconds =
          Double.parseDouble(form.group(1))
              * switch (form.group(2)) {
                case "m" -> SECONDS_PER_MINUTE;
                case "h" -> SECONDS_PER_MINUTE * SECONDS_PER_MINUTE;
                default -> 1;
              };
      millis = Math.ceil(seconds * MILLIS_PER_SECOND);
    }
    if (millis < unitMillis || millis % unitMillis != 0) {
      throw new BraidException(
          "%s must be a time%s, such as 90s, 10m or 1h, but was %s; try %s 10m"
              .formatted(
                  option,
                  unitMillis == MILLIS_PER_SECOND ? " of 1 s or more" : " over 0",
                  text,
                  option));
    }
    return Duration.ofMillis((long) millis);
  }

  public static TimeLimits none() {
    return new TimeLimits(Optional.empty(), Optional.empty());
  }

  /// Limit that a cell started now reaches first.
  ///
  /// @param option its option
  /// @param grace time to stop after it
  record Nearest(Duration left, String option, Duration grace) {}

  Optional<Nearest> nearest() {
    var ofCell =
        cell.map(limit -> new Nearest(limit, "--cell-timeout " + seconds(limit), grace(limit)));
    var ofRun =
        total.map(
            limit ->
                new Nearest(
                    limit.minusNanos(System.nanoTime() - startNanos),
                    "--timeout " + seconds(limit),
                    grace(limit)));
    if (ofCell.isPresent() && ofRun.isPresent()) {
      return ofCell.get().left().compareTo(ofRun.get().left()) <= 0 ? ofCell : ofRun;
    }
    return ofCell.or(() -> ofRun);
  }

  /// Returns the time for a cell to stop after this limit.
  static Duration grace(Duration limit) {
    var share = limit.dividedBy(LIMIT_PER_GRACE);
    return Collections.max(List.of(SHORTEST_GRACE, Collections.min(List.of(LONGEST_GRACE, share))));
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
