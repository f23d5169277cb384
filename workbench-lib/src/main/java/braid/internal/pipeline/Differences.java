package braid.internal.pipeline;

import braid.model.Verification;
import java.util.List;

/// Differences of the values of one rank from a reference, none of them too large.
public final class Differences {
  private static final String SEPARATOR = " ";

  private long values;
  private long exact;
  private double largest;
  private double allowed;

  /// Adds values that are equal to the reference, as they must be.
  public void addExact(long count) {
    values += count;
    exact += count;
  }

  /// Adds values, the largest difference of any of them, and the bound of this one.
  public void add(long count, double difference, double bound) {
    values += count;
    if (difference >= largest || Double.isNaN(difference)) {
      largest = difference;
      allowed = bound;
    }
  }

  /// Returns all of them in a form for other ranks.
  public String text() {
    return String.join(
        SEPARATOR,
        Long.toString(values),
        Long.toString(exact),
        Double.toString(largest),
        Double.toString(allowed));
  }

  /// Returns the result of all ranks from the [#text] of each.
  public static Verification together(List<String> ofRanks) {
    return ofRanks.stream()
        .map(text -> text.split(SEPARATOR, -1))
        .map(
            each ->
                new Verification(
                    Long.parseLong(each[0]),
                    Long.parseLong(each[1]),
                    Double.parseDouble(each[2]),
                    Double.parseDouble(each[3]),
                    ofRanks.size()))
        .reduce(Verification::and)
        .orElseThrow();
  }
}
