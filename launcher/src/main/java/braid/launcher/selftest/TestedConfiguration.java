package braid.launcher.selftest;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/// What came of one way, as a rank said it in a line of its output.
///
/// @param parts what it is made of, by the names in [#PARTS]
/// @param said why it is not available, or what was wrong first; of random programs that are right,
///   their seed and what they were made of
public record TestedConfiguration(List<String> parts, Outcome outcome, int cases, String said) {
  public static final List<String> PARTS =
      List.of("what", "method", "transport", "memory", "dtype");

  /// What there can be to say, in the library's words.
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

  /// Begins a line that is such a row. Libraries print to the same stream.
  static final String MARK = "\u001eself-test";

  private static final int FIELDS = PARTS.size() + 4;

  public TestedConfiguration {
    parts = List.copyOf(parts);
  }

  /// Empty where the line is none of these.
  static Optional<TestedConfiguration> read(String line) {
    var fields = line.split("\t", -1);
    if (fields.length != FIELDS || !fields[0].equals(MARK)) {
      return Optional.empty();
    }
    int at = PARTS.size() + 1;
    return Optional.of(
        new TestedConfiguration(
            Arrays.asList(fields).subList(1, at),
            Outcome.valueOf(fields[at]),
            Integer.parseInt(fields[at + 1]),
            fields[at + 2]));
  }

  public String what() {
    return parts.getFirst();
  }

  public String memory() {
    return parts.get(PARTS.indexOf("memory"));
  }

  /// "all-gather-gemm, ring, workers, native, bf16".
  public String words() {
    return String.join(", ", parts.stream().filter(part -> !part.equals("-")).toList());
  }
}
