package braid.internal.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import braid.internal.resource.Range;
import braid.model.DType;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.Integers;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// The contract of every access, tested on the host's.
class HostAccessTest {
  private static MemorySegment of(float... values) {
    return MemorySegment.ofArray(values);
  }

  private static long first(MemorySegment expected, MemorySegment got, double atol, double rtol) {
    return HostAccess.HOST.firstDifference(DType.FP32, expected, DType.FP32, got, atol, rtol);
  }

  @Test
  void aToleranceIsAbsoluteAndRelative() {
    assertThat(first(of(8), of(10.5f), 0.5, 0.25)).isNegative();
    assertThat(first(of(1, 8), of(1, 10.6f), 0.5, 0.25)).isEqualTo(1);
    assertThat(first(of(8), of(Float.NaN), 0.5, 0.25)).isZero();
    assertThat(first(of(Float.NaN), of(Float.NaN), 0, 0)).isNegative();
    assertThat(first(of(Float.NaN), of(8), 0.5, 0.25)).isZero();
    assertThat(first(of(8), of(Math.nextUp(8f)), 0, 0)).isZero();
    assertThat(first(of(0f), of(-0f), 0, 0)).isNegative();
  }

  @Test
  void infinitiesAreCloseToNoOtherNumber() {
    float infinity = Float.POSITIVE_INFINITY;
    assertThat(first(of(infinity), of(infinity), 0, 0)).isNegative();
    assertThat(first(of(infinity), of(5), 1, 1)).isZero();
    assertThat(first(of(5), of(infinity), 1, 1)).isZero();
    assertThat(first(of(infinity), of(-infinity), 1, 1)).isZero();
  }

  @Test
  void expectedNumbersAreRoundedToTheTypeOfGot() {
    var got = MemorySegment.ofArray(new byte[4]);
    DType.BF16.store(got, 0, 257);
    DType.BF16.store(got, 1, 3);
    assertThat(HostAccess.HOST.firstDifference(DType.FP32, of(257, 3), DType.BF16, got, 0, 0))
        .isNegative();
    assertThat(HostAccess.HOST.firstDifference(DType.FP32, of(257, 4), DType.BF16, got, 0, 0))
        .isEqualTo(1);
  }

  @Test
  void rangeFindsTheLargestSizeAndIntegers() {
    assertThat(HostAccess.HOST.range(DType.FP32, of(1, -2.5f))).isEqualTo(new Range(2.5, false));
    assertThat(HostAccess.HOST.range(DType.FP32, of(1, -2))).isEqualTo(new Range(2, true));
    assertThat(HostAccess.HOST.range(DType.FP32, of(Float.NaN, 1)))
        .isEqualTo(new Range(Double.NaN, false));
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void integersAreTheSameInEveryTypeAndAtEveryPlace(DType dtype) {
    int count = 1000;
    var memory = MemorySegment.ofArray(new byte[count * dtype.bytes()]);
    HostAccess.HOST.draw(dtype, memory, Drawn.INTEGERS, 17);
    for (int i = 0; i < count; i++) {
      assertThat(dtype.load(memory, i)).isEqualTo(Integers.at(17, i));
    }
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void realNumbersHaveMean0AndVariance1InEveryType(DType dtype) {
    int count = 100_000;
    var memory = MemorySegment.ofArray(new byte[count * dtype.bytes()]);
    HostAccess.HOST.draw(dtype, memory, Drawn.REALS, 17);
    double sum = 0;
    double squares = 0;
    double neighbors = 0;
    for (int i = 0; i < count; i++) {
      double each = dtype.load(memory, i);
      assertThat(each).isEqualTo(dtype.round(Drawn.REALS.at(17, i))).isBetween(-3.5, 3.5);
      sum += each;
      squares += each * each;
      neighbors += i == 0 ? 0 : each * dtype.load(memory, i - 1);
    }
    assertThat(sum / count).isCloseTo(0, within(0.02));
    assertThat(squares / count).isCloseTo(1, within(0.02));
    assertThat(neighbors / count).isCloseTo(0, within(0.02));
  }

  @ParameterizedTest
  @CsvSource({"0, 3 0 -3 3 -3 -1 -2 2", "1, 0 2 3 0 0 2 3 0", "-5, -3 0 3 2 1 -3 -3 0"})
  void integersAreTheSameOnEveryMachine(long seed, String expected) {
    var actual = new StringBuilder();
    for (int i = 0; i < 8; i++) {
      actual.append(i == 0 ? "" : " ").append(Integers.at(seed, i));
    }
    assertThat(actual).hasToString(expected);
  }

  @Test
  void integersAreUniform() {
    var counts = new int[2 * Integers.LARGEST + 1];
    int drawn = 70_000;
    for (int i = 0; i < drawn; i++) {
      counts[Integers.at(3, i) + Integers.LARGEST]++;
    }
    assertThat(Arrays.stream(counts)).allMatch(count -> count > 9_500 && count < 10_500);
  }
}
