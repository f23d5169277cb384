package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BusyTimeTest {
  private static final int LATEST = 60;

  private static Span span(long from, long to) {
    return new Span(0, 0, Stage.GEMM, "s", from, to, 0, 0);
  }

  @Test
  void overlappingSpansCountOnce() {
    assertThat(BusyTime.nanos(List.of())).isZero();
    assertThat(BusyTime.nanos(List.of(span(5, 5)))).isZero();
    assertThat(BusyTime.nanos(List.of(span(10, 20), span(0, 5)))).isEqualTo(15);
    assertThat(BusyTime.nanos(List.of(span(0, 10), span(5, 15)))).isEqualTo(15);
    assertThat(BusyTime.nanos(List.of(span(0, 100), span(10, 20), span(100, 101)))).isEqualTo(101);
    assertThat(BusyTime.nanos(List.of(span(-5, 5), span(0, 2), span(3, 8)))).isEqualTo(13);
  }

  /// Against every half nanosecond.
  @Test
  void timeOutsideOfOtherSpansIsThatOfEachInstant() {
    for (int seed = 0; seed < 500; seed++) {
      var random = new Random(seed);
      var communication = some(random);
      var compute = some(random);
      long exposed = 0;
      for (int instant = 0; instant < LATEST; instant++) {
        if (runs(communication, instant) && !runs(compute, instant)) {
          exposed++;
        }
      }
      assertThat(BusyTime.outside(communication, compute)).as("seed " + seed).isEqualTo(exposed);
    }
  }

  private static List<Span> some(Random random) {
    var spans = new ArrayList<Span>();
    for (int count = random.nextInt(8); count > 0; count--) {
      int from = random.nextInt(LATEST);
      spans.add(span(from, from + random.nextInt(LATEST - from)));
    }
    return spans;
  }

  /// Returns whether a span runs in the middle of the nanosecond that begins at that instant.
  private static boolean runs(List<Span> spans, int instant) {
    return spans.stream()
        .anyMatch(span -> span.startNanos() < instant + 0.5 && instant + 0.5 < span.endNanos());
  }
}
