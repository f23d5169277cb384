package braid.natives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class BlasTest {
  @Test
  void multipliesIntoRowsThatAreFurtherApart() {
    Blas.limitThreads(1);
    try (var arena = Arena.ofConfined()) {
      var a = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 2, 3, 4, 5, 6);
      var b = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 0, 0, 1, 1, 1);
      var c = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 9, 9, 9, 9, 9, 9);
      Blas.sgemm(2, 2, 3, a, b, c, 3);
      assertThat(c.toArray(ValueLayout.JAVA_FLOAT)).containsExactly(4, 5, 9, 10, 11, 9);
    }
  }

  @Test
  void refusesASegmentThatIsTooShort() {
    try (var arena = Arena.ofConfined()) {
      var four = arena.allocate(ValueLayout.JAVA_FLOAT, 4);
      assertThatThrownBy(() -> Blas.sgemm(2, 2, 3, four, four, four, 2))
          .hasMessage("a is 2 x 3 with rows 3 apart and needs 24 bytes but has 16");
    }
  }
}
