package braid.model;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/// Type of a tensor's elements. Sums are kept in fp32 for every type; narrow types are rounded to
/// nearest, ties to even, when stored.
public enum DType {
  FP32(Float.BYTES, 0x1p-23, Float.MAX_VALUE),
  /// Stored as fp32; GPUs multiply it with 10 bits of fraction, the host as fp32.
  TF32(Float.BYTES, 0x1p-10, Float.MAX_VALUE),
  /// 8 bits of exponent, 7 of fraction: the range of fp32, integers exact up to 256.
  BF16(Short.BYTES, 0x1p-7, 0x1.fep127f),
  /// 5 bits of exponent, 10 of fraction: integers exact up to 2048, infinite from 65520 on.
  FP16(Short.BYTES, 0x1p-10, 65504),
  /// 4 bits of exponent, 3 of fraction: integers exact up to 16, saturated at 448, no infinity.
  FP8_E4M3(Byte.BYTES, 0x1p-3, 448),
  /// 5 bits of exponent, 2 of fraction: integers exact up to 8, saturated at 57344.
  FP8_E5M2(Byte.BYTES, 0x1p-2, 57344);

  private final int bytes;
  private final double epsilon;
  private final float largest;

  DType(int bytes, double epsilon, float largest) {
    this.bytes = bytes;
    this.epsilon = epsilon;
    this.largest = largest;
  }

  /// Returns the bytes per element.
  public int bytes() {
    return bytes;
  }

  /// Returns the distance from 1 to the next larger value.
  public double epsilon() {
    return epsilon;
  }

  /// Returns the largest finite number.
  public float largest() {
    return largest;
  }

  /// Returns true for 8-bit types, whose numbers need a scale.
  public boolean isFp8() {
    return this == FP8_E4M3 || this == FP8_E5M2;
  }

  /// Returns the type in which partial sums of such outputs travel, and of their bias and
  /// pre-activation: the type itself, and BF16 for FP8, whose precision is too low for partial
  /// sums.
  public DType sumType() {
    return isFp8() ? BF16 : this;
  }

  /// Returns true if it is stored as fp32.
  public boolean isStoredAsFp32() {
    return this == FP32 || this == TF32;
  }

  /// Returns the type of that name, in any case: `bf16`.
  public static DType parse(String name) {
    return Arrays.stream(values())
        .filter(type -> type.name().equalsIgnoreCase(name.strip()))
        .findFirst()
        .orElseThrow(
            () ->
                new BraidException(
                    "dtype must be one of "
                        + Arrays.stream(values())
                            .map(DType::toString)
                            .collect(Collectors.joining(", "))
                        + " but was "
                        + name));
  }

  /// Returns an element, widened to float.
  public float load(MemorySegment segment, long index) {
    return switch (this) {
      case FP32, TF32 -> segment.getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, index);
      case BF16 ->
          Float.intBitsToFloat(segment.getAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index) << 16);
      case FP16 ->
          Float.float16ToFloat(segment.getAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index));
      case FP8_E4M3 -> Fp8.E4M3.widen(segment.get(ValueLayout.JAVA_BYTE, index));
      case FP8_E5M2 -> Fp8.E5M2.widen(segment.get(ValueLayout.JAVA_BYTE, index));
    };
  }

  /// Stores a value, rounded to this type.
  public void store(MemorySegment segment, long index, float value) {
    switch (this) {
      case FP32, TF32 -> segment.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, index, value);
      case BF16 -> segment.setAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index, toBf16(value));
      case FP16 ->
          segment.setAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index, Float.floatToFloat16(value));
      case FP8_E4M3 -> segment.set(ValueLayout.JAVA_BYTE, index, Fp8.E4M3.narrow(value));
      case FP8_E5M2 -> segment.set(ValueLayout.JAVA_BYTE, index, Fp8.E5M2.narrow(value));
    }
  }

  /// Returns the value after rounding to this type.
  public float round(float value) {
    return switch (this) {
      case FP32, TF32 -> value;
      case BF16 -> Float.intBitsToFloat(toBf16(value) << 16);
      case FP16 -> Float.float16ToFloat(Float.floatToFloat16(value));
      case FP8_E4M3 -> Fp8.E4M3.widen(Fp8.E4M3.narrow(value));
      case FP8_E5M2 -> Fp8.E5M2.widen(Fp8.E5M2.narrow(value));
    };
  }

  private static short toBf16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      // A NaN whose payload is only in the dropped half must not become an infinity.
      return (short) ((bits >>> 16) | 0x40);
    }
    int halfway = 0x7fff + ((bits >>> 16) & 1);
    return (short) ((bits + halfway) >>> 16);
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
