package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Span;
import braid.model.Stage;
import java.util.List;
import org.junit.jupiter.api.Test;

class BusyTimeTest {
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
}
