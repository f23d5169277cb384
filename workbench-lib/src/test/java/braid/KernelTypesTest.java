package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.DType;
import braid.natives.kernels.ElementType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The reference for the kernels is the host's arithmetic, to the last bit.
class KernelTypesTest {
  private static ElementType same(DType type) {
    return switch (type) {
      case FP32 -> ElementType.FP32;
      case TF32 -> ElementType.TF32;
      case BF16 -> ElementType.BF16;
      case FP16 -> ElementType.FP16;
      case FP8_E4M3 -> ElementType.E4M3;
      case FP8_E5M2 -> ElementType.E5M2;
    };
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void widenAndNarrowAlike(DType type) {
    var kernels = same(type);
    var cell = MemorySegment.ofArray(new byte[Float.BYTES]);
    assertThat(kernels.bytes()).isEqualTo(type.bytes());
    for (int upper = 0; upper < 1 << 16; upper++) {
      for (int lower : new int[] {0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff}) {
        float value = Float.intBitsToFloat((upper << 16) | lower);
        type.store(cell, 0, value);
        int bits = bits(type, cell);
        if (bits != kernels.narrow(value) || differ(type.load(cell, 0), kernels.widen(bits))) {
          assertThat(kernels.narrow(value)).as("%s of %s", type, value).isEqualTo(bits);
          assertThat(kernels.widen(bits)).as("%s %x", type, bits).isEqualTo(type.load(cell, 0));
        }
      }
    }
  }

  private static boolean differ(float a, float b) {
    return Float.compare(a, b) != 0;
  }

  private static int bits(DType type, MemorySegment cell) {
    return switch (type.bytes()) {
      case Float.BYTES -> cell.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
      case Short.BYTES -> cell.get(ValueLayout.JAVA_SHORT_UNALIGNED, 0) & 0xffff;
      default -> cell.get(ValueLayout.JAVA_BYTE, 0) & 0xff;
    };
  }
}
