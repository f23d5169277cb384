package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class BlasTest {
  @Test
  void matricesWithGapsAreMultiplied() {
    Blas.limitThreads(1);
    try (var arena = Arena.ofConfined()) {
      // 2 x 3 with rows 4 apart; 3 x 2 by columns, 3 apart
      var a = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 2, 3, 77, 4, 5, 6, 77);
      var b = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 0, 1, 0, 1, 1);
      var c = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 1, 1, 1);
      var left = new Blas.Factor(a, 4, false);
      var right = new Blas.Factor(b, 3, true);
      Blas.sgemm(left, right, new Blas.Sum(2, 2, 3, 1, 0, c));
      assertThat(c.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(4, 5, 10, 11);
      Blas.sgemm(left, right, new Blas.Sum(2, 2, 3, 2, 1, c));
      assertThat(c.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(12, 15, 30, 33);
    }
  }

  @Test
  void anOverwrittenResultIsNotRead() {
    try (var arena = Arena.ofConfined()) {
      var one = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1);
      var c = arena.allocateFrom(ValueLayout.JAVA_FLOAT, Float.NaN);
      var factor = new Blas.Factor(one, 1, false);
      Blas.sgemm(factor, factor, new Blas.Sum(1, 1, 1, 1, 0, c));
      assertThat(c.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(1);
    }
  }

  @Test
  void aSegmentThatIsTooShortIsRefused() {
    try (var arena = Arena.ofConfined()) {
      MemorySegment four = arena.allocate(ValueLayout.JAVA_FLOAT, 4);
      var factor = new Blas.Factor(four, 3, false);
      assertThatThrownBy(() -> Blas.sgemm(factor, factor, new Blas.Sum(2, 2, 3, 1, 0, four)))
          .hasMessage("a is 2 x 3 with rows 3 apart and needs 24 bytes but has 16");
      assertThatThrownBy(() -> Blas.add(four.asSlice(4), four))
          .hasMessage("4 numbers need 16 bytes but there are 12");
    }
  }
}
