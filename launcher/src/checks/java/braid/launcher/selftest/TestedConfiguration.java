package braid.launcher.selftest;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// Result of one way, parsed from a line of a rank's output.
///
/// @param number number of results before it
/// @param parts its parts, by the names in [#PARTS]
/// @param said why it is unavailable, or its first error; for correct random programs, their seed
///   and composition; for communication, the units that did it
public record TestedConfiguration(
    int number, List<String> parts, Outcome outcome, int cases, String said) {
  public static final List<String> PARTS =
      List.of("what", "method", "transport", "memory", "dtype");

  /// Outcomes, in the library's words.
  public enum Outcome {
    OK,
    NOT_AVAILABLE,
    WRONG,
    NOT_RUN;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  /// First field of a result line. Libraries print to the same stream.
  static final String MARK = "\u001eself-test";

  /// First field of a line that names the case that begins.
  static final String BEGINS = "\u001eself-test-begins";

  private static final int FIELDS = PARTS.size() + 5;

  public TestedConfiguration {
    parts = List.copyOf(parts);
  }

  /// Parses a line; empty if it is not a result.
  static Optional<TestedConfiguration> read(String line) {
    var fields = line.split("\t", -1);
    if (fields.length != FIELDS || !fields[0].equals(MARK)) {
      return Optional.empty();
    }
    int index = PARTS.size() + 2;
    return Optional.of(
        new TestedConfiguration(
            Integer.parseInt(fields[1]),
            Arrays.asList(fields).subList(2, index),
            Outcome.valueOf(fields[index]),
            Integer.parseInt(fields[index + 1]),
            fields[index + 2]));
  }

  /// Returns what stands for results that did not arrive.
  ///
  /// @param first number of results before them
  static TestedConfiguration lost(int first, int count) {
    return new TestedConfiguration(
        first,
        List.of("results", "-", "-", "-", "-"),
        Outcome.NOT_RUN,
        0,
        "%d of them were left out of the output; raise --output-limit".formatted(count));
  }

  public String what() {
    return parts.getFirst();
  }

  public String memory() {
    return parts.get(PARTS.indexOf("memory"));
  }

  /// Describes the way: "all-gather-gemm, ring, workers, native, bf16".
  public String words() {
    return String.join(", ", parts.stream().filter(part -> !part.equals("-")).toList());
  }
}
