package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import braid.DType;
import braid.GemmSpec;
import braid.internal.exchange.Slice;
import braid.internal.host.HostAccess;
import braid.internal.resource.Range;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Slices, clocks and tolerances.
class PartsTest {
  @ParameterizedTest
  @CsvSource({"10, 3, '0+4 4+3 7+3'", "2, 2, '0+1 1+1'", "7, 1, '0+7'", "5, 4, '0+2 2+1 3+1 4+1'"})
  void slicesAreBalancedAndCoverEverything(int total, int parts, String expected) {
    var said = new StringBuilder();
    for (int i = 0; i < parts; i++) {
      var slice = Slice.of(total, parts, i);
      said.append(i == 0 ? "" : " ").append(slice.start()).append('+').append(slice.length());
    }
    assertThat(said).hasToString(expected);
  }

  @Test
  void aClockThatMayBeTheSameIsTakenForIt() {
    assertThat(ClockAlignment.of(false, -300, 100)).isEqualTo(new ClockAlignment(0, 300));
    assertThat(ClockAlignment.of(false, 1000, 1400)).isEqualTo(new ClockAlignment(1200, 200));
    assertThat(ClockAlignment.of(false, -1401, -1000)).isEqualTo(new ClockAlignment(-1201, 201));
    assertThat(ClockAlignment.of(true, -300, 100)).isEqualTo(new ClockAlignment(0, 0));
    // What calls itself one clock and is seen not to be is not believed.
    assertThat(ClockAlignment.of(true, 1000, 1400)).isEqualTo(new ClockAlignment(1200, 200));
  }

  @Test
  void integersWhoseSumsAreExactMustAgreeExactly() {
    var three = new Range(3, true);
    assertThat(fitting(DType.BF16, 1 << 20, three, three)).isEqualTo(Tolerance.EXACT);
    assertThat(fitting(DType.BF16, 1 << 21, three, three)).isNotEqualTo(Tolerance.EXACT);
    var range = HostAccess.HOST.range(DType.FP32, MemorySegment.ofArray(new float[] {1, -2.5f}));
    assertThat(range).isEqualTo(new Range(2.5, false));
    assertThat(fitting(DType.FP32, 1, range, three)).isNotEqualTo(Tolerance.EXACT);
  }

  private static Tolerance fitting(DType dtype, int depth, Range left, Range right) {
    return Tolerance.fitting(
        GemmSpec.allGatherGemm(1, 1, depth).dtype(dtype), 1, 1, 0, left, right);
  }
}
