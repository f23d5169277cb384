package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.SyntheticReduction;
import org.junit.jupiter.api.Test;

class StreamOrderTest {
  @Test
  void gemmStreamsComeBeforeCopiesAndNumbersSortAsNumbers() {
    var profiles = new SyntheticReduction(2, 1, 12, 12, 10, 10).set().profiles();

    assertThat(StreamOrder.of(profiles))
        .containsExactly(
            "gemm-0",
            "gemm-1",
            "gemm-2",
            "gemm-3",
            "gemm-4",
            "gemm-5",
            "gemm-6",
            "gemm-7",
            "gemm-8",
            "gemm-9",
            "gemm-10",
            "gemm-11",
            "comm",
            "comm-gather",
            "reduce");
  }
}
