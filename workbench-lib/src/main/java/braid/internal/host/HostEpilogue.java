package braid.internal.host;

import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.natives.Blas;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.function.LongFunction;

/// Applies an epilogue to fp32 sums.
final class HostEpilogue {
  private static final VarHandle BITS = ValueLayout.JAVA_INT.varHandle();
  private static final double SQRT_2_OVER_PI = Math.sqrt(2 / Math.PI);
  private static final double CUBIC = 0.044715;

  private HostEpilogue() {}

  /// Computes the output from the sums, which are scaled and are overwritten. They may be in the
  /// output's own memory if that is fp32.
  static void finish(
      MemorySegment sums, Matrix out, Epilogue epilogue, LongFunction<MemorySegment> allocator) {
    long count = (long) out.rows() * out.columns();
    var values = sums.asSlice(0, count * Float.BYTES);
    if (epilogue.accumulate()) {
      var previous = allocator.apply(values.byteSize());
      Numbers.widen(out.dtype(), out.bytes(), previous);
      Blas.add(previous, values);
    }
    epilogue.bias().ifPresent(bias -> addBias(values, out, bias));
    epilogue.preActivation().ifPresent(preActivation -> activate(values, preActivation));
    epilogue.amax().ifPresent(amax -> raise(amax, Numbers.largest(values)));
    Numbers.scale(values, epilogue.outScale());
    if (values.address() != out.segment().address()) {
      Numbers.narrow(out.dtype(), values, out.bytes());
    }
  }

  /// Adds the bias row by row with OpenBLAS: Java loops, compiled in ranks by the first compiler
  /// only, would take a hundred times as long.
  private static void addBias(MemorySegment values, Matrix out, MemorySegment bias) {
    long rowBytes = (long) out.columns() * Float.BYTES;
    try (var arena = Arena.ofConfined()) {
      var wide = arena.allocate(rowBytes, Float.BYTES);
      Numbers.widen(out.dtype().sumType(), bias, wide);
      for (int row = 0; row < out.rows(); row++) {
        Blas.add(wide, values.asSlice(row * rowBytes, rowBytes));
      }
    }
  }

  private static void activate(MemorySegment values, Matrix preActivation) {
    Numbers.narrow(preActivation.dtype(), values, preActivation.bytes());
    Numbers.round(preActivation.dtype(), values);
    long count = values.byteSize() / Float.BYTES;
    for (long i = 0; i < count; i++) {
      values.setAtIndex(
          ValueLayout.JAVA_FLOAT, i, gelu(values.getAtIndex(ValueLayout.JAVA_FLOAT, i)));
    }
  }

  /// GELU in its tanh form, as in GPU libraries.
  static float gelu(float x) {
    return (float) (0.5 * x * (1 + Math.tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x))));
  }

  /// Raises the maximum atomically. Non-negative numbers are ordered as their bits are.
  private static void raise(MemorySegment amax, float value) {
    int bits = Float.floatToIntBits(value);
    for (int now = (int) BITS.getVolatile(amax, 0L);
        bits > now && !BITS.compareAndSet(amax, 0L, now, bits); ) {
      now = (int) BITS.getVolatile(amax, 0L);
    }
  }
}
