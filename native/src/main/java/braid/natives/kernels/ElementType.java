package braid.natives.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Type of one number in GPU memory. Kernels identify types by their codes.
public enum ElementType {
  FP32(0, Float.BYTES),
  /// Stored as fp32; only multiplications differ.
  TF32(1, Float.BYTES),
  BF16(2, Short.BYTES),
  FP16(3, Short.BYTES),
  E4M3(4, Byte.BYTES),
  E5M2(5, Byte.BYTES);

  private static final int SIGN_OF_8 = 0x80;
  private static final int E4M3_NAN = 0x7f;

  private final int code;
  private final int bytes;

  ElementType(int code, int bytes) {
    this.code = code;
    this.bytes = bytes;
  }

  public int bytes() {
    return bytes;
  }

  /// Code of the type in kernels.
  public int code() {
    return code;
  }

  /// The type with the same storage.
  ElementType stored() {
    return this == TF32 ? FP32 : this;
  }

  float load(MemorySegment from, long index) {
    return widen(
        switch (bytes) {
          case Float.BYTES -> from.getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, index);
          case Short.BYTES -> from.getAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index);
          default -> from.get(ValueLayout.JAVA_BYTE, index);
        });
  }

  void store(MemorySegment to, long index, float value) {
    int bits = narrow(value);
    switch (bytes) {
      case Float.BYTES -> to.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, index, bits);
      case Short.BYTES -> to.setAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, index, (short) bits);
      default -> to.set(ValueLayout.JAVA_BYTE, index, (byte) bits);
    }
  }

  /// Returns the value after this type has stored it.
  float round(float value) {
    return widen(narrow(value));
  }

  /// Returns the value of the bits. Uses arithmetic where the kernels shift bits, so that the two
  /// can be compared.
  public float widen(int bits) {
    return switch (this) {
      case FP32, TF32 -> Float.intBitsToFloat(bits);
      case BF16 -> Float.intBitsToFloat(bits << 16);
      case FP16 -> Float.float16ToFloat((short) bits);
      // The upper half of an fp16 number.
      case E5M2 -> Float.float16ToFloat((short) (bits << 8));
      case E4M3 -> {
        int size = bits & 0x7f;
        int exponent = size >> 3;
        int fraction = size & 7;
        float value =
            size == E4M3_NAN
                ? Float.NaN
                : exponent == 0
                    ? Math.scalb((float) fraction, -9)
                    : Math.scalb((float) (fraction + 8), exponent - 10);
        yield (bits & SIGN_OF_8) == 0 ? value : -value;
      }
    };
  }

  /// Returns the bits of a value in this type, rounded to nearest, ties to even; fp8 saturates.
  public int narrow(float value) {
    return switch (this) {
      case FP32, TF32 -> Float.floatToRawIntBits(value);
      case BF16 -> narrowToBf16(value);
      case FP16 -> Float.floatToFloat16(value) & 0xffff;
      case E4M3 -> narrowTo8(value, 3, 7, 0x7e, E4M3_NAN);
      case E5M2 -> narrowTo8(value, 2, 15, 0x7b, 0x7f);
    };
  }

  private static int narrowToBf16(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return ((bits >>> 16) | 0x40) & 0xffff;
    }
    return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
  }

  private int narrowTo8(float value, int fractionBits, int bias, int largestBits, int nanBits) {
    int sign = Float.floatToRawIntBits(value) < 0 ? SIGN_OF_8 : 0;
    if (Float.isNaN(value)) {
      return sign | nanBits;
    }
    float size = Math.abs(value);
    if (size >= widen(largestBits)) {
      return sign | largestBits;
    }
    int exponent = Math.max(Math.getExponent(size), 1 - bias);
    int steps = (int) Math.rint(Math.scalb(size, fractionBits - exponent));
    // Rounding up to a power of two carries into the exponent.
    return sign | (((exponent + bias - 1) << fractionBits) + steps);
  }
}
