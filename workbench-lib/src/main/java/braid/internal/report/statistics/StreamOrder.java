package braid.internal.report.statistics;

import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;

/// Order of a rank's streams in charts and traces: those that multiply before those that
/// communicate, streams of one kind by name, with numbers in numeric order.
public final class StreamOrder {
  private StreamOrder() {}

  /// Returns every stream that has a span on any rank.
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

  /// Returns the kind of a span; reductions and local copies belong to communication.
  private static Stage kind(Span span) {
    return switch (span.stage()) {
      case COPY, REDUCE, LOCAL -> Stage.COPY;
      case GEMM, ATTENTION -> Stage.GEMM;
      case WAIT, SIGNAL -> span.stage();
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
    int index = stream.length();
    while (index > 0 && stream.charAt(index - 1) >= '0' && stream.charAt(index - 1) <= '9') {
      index--;
    }
    return index;
  }
}
