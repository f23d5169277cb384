package braid.internal.report.statistics;

import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;

/// In which order a rank's streams stand, in charts and traces: those that multiply above those
/// that communicate, those of one kind by name, numbers in it as numbers.
public final class StreamOrder {
  private StreamOrder() {}

  /// Every stream that has a span, of whichever rank.
  public static List<String> of(List<Profile> ofRanks) {
    var first = new HashMap<String, Stage>();
    for (var profile : ofRanks) {
      for (var span : profile.spans()) {
        first.merge(span.stream(), kind(span), (a, b) -> a.compareTo(b) <= 0 ? a : b);
      }
    }
    return first.keySet().stream()
        .sorted(
            Comparator.comparing((String stream) -> first.getOrDefault(stream, Stage.SIGNAL))
                .thenComparing(StreamOrder::prefix)
                .thenComparingLong(StreamOrder::number)
                .thenComparing(Comparator.naturalOrder()))
        .toList();
  }

  /// What is added up or put in its place belongs to communication, whoever does it.
  private static Stage kind(Span span) {
    return switch (span.stage()) {
      case COPY, REDUCE, LOCAL -> Stage.COPY;
      case GEMM, WAIT, SIGNAL -> span.stage();
    };
  }

  private static String prefix(String stream) {
    return stream.substring(0, digitsAt(stream));
  }

  private static long number(String stream) {
    var digits = stream.substring(digitsAt(stream));
    return digits.isEmpty() || digits.length() > 9 ? -1 : Long.parseLong(digits);
  }

  private static int digitsAt(String stream) {
    int at = stream.length();
    while (at > 0 && stream.charAt(at - 1) >= '0' && stream.charAt(at - 1) <= '9') {
      at--;
    }
    return at;
  }
}
