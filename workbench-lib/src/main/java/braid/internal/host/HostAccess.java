package braid.internal.host;

import braid.internal.remote.RemoteWindow;
import braid.internal.resource.Bounds;
import braid.internal.resource.BoundsResult;
import braid.internal.resource.ErrorBound;
import braid.internal.resource.Inspection;
import braid.internal.resource.Interval;
import braid.internal.resource.Range;
import braid.internal.work.Transfer;
import braid.model.DType;
import braid.natives.kernels.Drawn;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.function.Consumer;
import java.util.function.LongToDoubleFunction;

/// Access to memory of the host, by plain loops. Memory of another host is copied here first, and
/// back after it was written.
public final class HostAccess implements Inspection {
  public static final HostAccess HOST = new HostAccess();

  private static final double INFINITE = Double.POSITIVE_INFINITY;

  private HostAccess() {}

  @Override
  public boolean direct() {
    return true;
  }

  @Override
  public boolean reaches(MemorySegment memory) {
    return !RemoteWindow.isRemote(memory);
  }

  @Override
  public void copy(MemorySegment from, MemorySegment to) {
    if (reaches(from) && reaches(to)) {
      to.copyFrom(from);
    } else {
      withCopy(from, near -> move(near, to));
    }
  }

  private static void move(MemorySegment from, MemorySegment target) {
    RemoteWindow.move(() -> "an access to memory of another host", Transfer.of(from, target));
  }

  /// Runs the body with memory of this host: the memory itself, or a copy if it is another host's.
  private void withCopy(MemorySegment memory, Consumer<MemorySegment> body) {
    if (reaches(memory)) {
      body.accept(memory);
      return;
    }
    try (var arena = Arena.ofShared()) {
      var near = arena.allocate(memory.byteSize(), Long.BYTES);
      move(memory, near);
      body.accept(near);
    }
  }

  /// Runs the body, which writes all of the memory, on the memory or in place of it.
  private void writing(MemorySegment memory, Consumer<MemorySegment> body) {
    if (reaches(memory)) {
      body.accept(memory);
      return;
    }
    try (var arena = Arena.ofShared()) {
      var near = arena.allocate(memory.byteSize(), Long.BYTES);
      body.accept(near);
      move(near, memory);
    }
  }

  @Override
  public void fill(DType dtype, MemorySegment memory, float value) {
    storing(dtype, memory, memory.byteSize() / dtype.bytes(), _ -> value);
  }

  @Override
  public void draw(DType dtype, MemorySegment memory, Drawn numbers, long seed) {
    storing(dtype, memory, memory.byteSize() / dtype.bytes(), i -> numbers.at(seed, i));
  }

  @Override
  public Range range(DType dtype, MemorySegment memory) {
    double largest = 0;
    boolean integers = true;
    long count = memory.byteSize() / dtype.bytes();
    for (long i = 0; i < count; i++) {
      float value = dtype.load(memory, i);
      largest = Math.max(largest, Math.abs(value));
      integers &= value == Math.rint(value);
    }
    return new Range(largest, integers);
  }

  @Override
  public long firstDifference(
      DType expectedType,
      MemorySegment expected,
      DType gotType,
      MemorySegment got,
      double atol,
      double rtol) {
    long count = expected.byteSize() / expectedType.bytes();
    for (long i = 0; i < count; i++) {
      float expectedValue = gotType.round(expectedType.load(expected, i));
      if (!agree(expectedValue, gotType.load(got, i), atol, rtol)) {
        return i;
      }
    }
    return -1;
  }

  private static boolean agree(float expected, float found, double atol, double rtol) {
    if (expected == found || (Float.isNaN(expected) && Float.isNaN(found))) {
      return true;
    }
    double apart = Math.abs((double) expected - found);
    // An infinity is close to no other number.
    return apart < Double.POSITIVE_INFINITY && apart <= atol + rtol * Math.abs((double) expected);
  }

  @Override
  public void sizes(DType dtype, MemorySegment from, MemorySegment to) {
    long count = from.byteSize() / dtype.bytes();
    for (long i = 0; i < count; i++) {
      dtype.store(to, i, Math.abs(dtype.load(from, i)));
    }
  }

  @Override
  public void widen(MemorySegment low, MemorySegment high, MemorySegment sizes, ErrorBound bound) {
    long count = sizes.byteSize() / Float.BYTES;
    for (long i = 0; i < count; i++) {
      float size = DType.FP32.load(sizes, i);
      if (size <= bound.exact()) {
        continue;
      }
      // In double precision, exact enough to be rounded outward.
      double far = Double.isFinite(size) ? (double) bound.share() * size + bound.least() : INFINITE;
      boolean anything = bound.overflows() && far == INFINITE;
      float lower = DType.FP32.load(low, i);
      if (Float.isFinite(lower) || anything) {
        DType.FP32.store(low, i, anything ? Float.NEGATIVE_INFINITY : down(lower - far));
      }
      float upper = DType.FP32.load(high, i);
      if (Float.isFinite(upper) || anything) {
        DType.FP32.store(high, i, anything ? Float.POSITIVE_INFINITY : -down(-(upper + far)));
      }
    }
  }

  private static float down(double value) {
    float near = (float) value;
    return near > value ? Math.nextDown(near) : near;
  }

  @Override
  public BoundsResult judge(Interval expected, DType gotType, MemorySegment got) {
    long count = got.byteSize() / gotType.bytes();
    long first = -1;
    double squares = 0;
    double allowed = 0;
    double largest = 0;
    long largestAt = 0;
    for (long i = 0; i < count; i++) {
      var bounds = expected.at(this, i);
      var stored = bounds.rounded(gotType);
      float found = gotType.load(got, i);
      if (first < 0 && !stored.allow(found)) {
        first = i;
      }
      double difference = Math.abs((double) found - stored.expected());
      if (difference > largest && difference < INFINITE) {
        largest = difference;
        largestAt = i;
      }
      double reach = bounds.reach();
      if (Float.isFinite(found) && reach < INFINITE) {
        double off = Bounds.unexplained(gotType, bounds.expected(), found);
        squares += off * off;
        allowed += reach * reach;
      }
    }
    return new BoundsResult(first, squares, allowed, largest, largestAt);
  }

  @Override
  public float get(DType dtype, MemorySegment memory, long index) {
    if (reaches(memory)) {
      return dtype.load(memory, index);
    }
    var one = new float[1];
    load(dtype, element(dtype, memory, index), one);
    return one[0];
  }

  private static MemorySegment element(DType dtype, MemorySegment memory, long index) {
    return memory.asSlice(index * dtype.bytes(), dtype.bytes());
  }

  @Override
  public void set(DType dtype, MemorySegment memory, long index, float value) {
    writing(element(dtype, memory, index), near -> dtype.store(near, 0, value));
  }

  @Override
  public void load(DType dtype, MemorySegment memory, float[] target) {
    withCopy(
        memory.asSlice(0, (long) target.length * dtype.bytes()),
        near -> {
          for (int i = 0; i < target.length; i++) {
            target[i] = dtype.load(near, i);
          }
        });
  }

  @Override
  public void store(DType dtype, float[] values, MemorySegment memory) {
    storing(dtype, memory, values.length, i -> values[(int) i]);
  }

  private void storing(DType dtype, MemorySegment memory, long count, LongToDoubleFunction number) {
    writing(
        memory.asSlice(0, count * dtype.bytes()),
        near -> {
          for (long i = 0; i < count; i++) {
            dtype.store(near, i, (float) number.applyAsDouble(i));
          }
        });
  }
}
