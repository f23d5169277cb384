package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.internal.remote.RemoteWindow;
import braid.internal.resource.BoundsResult;
import braid.internal.resource.ErrorBound;
import braid.internal.resource.Inspection;
import braid.internal.resource.Interval;
import braid.internal.resource.Range;
import braid.model.BraidException;
import braid.model.DType;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.Kernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Consumer;

/// Access to numbers in a GPU's memory. Kernels fill and examine them in place, since a weight has
/// hundreds of millions of them.
public final class DeviceAccess implements Inspection, AutoCloseable {
  private static final long RESULT_BYTES = 3 * Long.BYTES;
  private static final long NONE = -1;

  private final CudaDevice device;
  private final Kernels kernels;
  private final GpuStream stream;
  private final long result;

  public DeviceAccess(CudaDevice device) {
    this.device = device;
    this.kernels = device.kernels();
    this.stream = device.gpu().stream(device.gpu().leastPriority());
    this.result = device.gpu().allocate(RESULT_BYTES);
  }

  @Override
  public void copy(MemorySegment from, MemorySegment to) {
    if (from.byteSize() > 0) {
      device.gpu().use();
      device.gpu().copy(address(to), address(from), from.byteSize());
    }
  }

  @Override
  public void fill(DType dtype, MemorySegment memory, float value) {
    run(
        stream ->
            kernels.fillValue(
                stream, address(memory), count(dtype, memory), Arguments.type(dtype), value));
  }

  @Override
  public void draw(DType dtype, MemorySegment memory, Drawn numbers, long seed) {
    run(
        stream ->
            kernels.draw(
                stream,
                address(memory),
                count(dtype, memory),
                Arguments.type(dtype),
                numbers,
                seed));
  }

  @Override
  public synchronized Range range(DType dtype, MemorySegment memory) {
    try (var arena = Arena.ofConfined()) {
      var answer = arena.allocate(RESULT_BYTES, Long.BYTES);
      answer.set(ValueLayout.JAVA_FLOAT, 0, 0);
      answer.set(ValueLayout.JAVA_INT, Float.BYTES, 1);
      runOn(
          answer,
          stream ->
              kernels.range(
                  stream, address(memory), count(dtype, memory), Arguments.type(dtype), result));
      return new Range(
          answer.get(ValueLayout.JAVA_FLOAT, 0),
          answer.get(ValueLayout.JAVA_INT, Float.BYTES) != 0);
    }
  }

  @Override
  public synchronized long firstDifference(
      DType expectedType,
      MemorySegment expected,
      DType gotType,
      MemorySegment got,
      double atol,
      double rtol) {
    try (var arena = Arena.ofConfined()) {
      var answer = arena.allocate(RESULT_BYTES, Long.BYTES);
      answer.set(ValueLayout.JAVA_LONG, 0, NONE);
      long count = Math.min(count(expectedType, expected), count(gotType, got));
      runOn(
          answer,
          stream ->
              kernels.compare(
                  stream,
                  address(expected),
                  Arguments.type(expectedType),
                  address(got),
                  Arguments.type(gotType),
                  count,
                  atol,
                  rtol,
                  result));
      return answer.get(ValueLayout.JAVA_LONG, Long.BYTES) == 0
          ? NONE
          : answer.get(ValueLayout.JAVA_LONG, 0);
    }
  }

  @Override
  public void sizes(DType dtype, MemorySegment from, MemorySegment to) {
    run(
        stream ->
            kernels.sizes(
                stream, address(to), address(from), count(dtype, from), Arguments.type(dtype)));
  }

  @Override
  public void widen(MemorySegment low, MemorySegment high, MemorySegment sizes, ErrorBound bound) {
    run(
        stream ->
            kernels.widen(
                stream,
                low.address(),
                high.address(),
                sizes.address(),
                count(DType.FP32, sizes),
                bound.share(),
                bound.least(),
                bound.exact(),
                bound.overflows()));
  }

  @Override
  public synchronized BoundsResult judge(Interval expected, DType gotType, MemorySegment got) {
    try (var arena = Arena.ofConfined()) {
      var answer = arena.allocate(RESULT_BYTES, Long.BYTES);
      answer.set(ValueLayout.JAVA_LONG, 0, NONE);
      runOn(
          answer,
          stream ->
              kernels.judge(
                  stream,
                  expected.expected().address(),
                  expected.low().address(),
                  expected.high().address(),
                  Arguments.type(expected.dtype()),
                  expected.activated(),
                  expected.outScale(),
                  address(got),
                  Arguments.type(gotType),
                  count(gotType, got),
                  result));
      return new BoundsResult(
          answer.get(ValueLayout.JAVA_LONG, 0),
          answer.getAtIndex(ValueLayout.JAVA_DOUBLE, 1),
          answer.getAtIndex(ValueLayout.JAVA_DOUBLE, 2),
          Double.NaN,
          0);
    }
  }

  /// Runs a kernel that overwrites `answer` with its result.
  private void runOn(MemorySegment answer, Consumer<GpuStream> kernel) {
    device.gpu().use();
    device.gpu().copy(result, answer.address(), RESULT_BYTES);
    run(kernel);
    device.gpu().copy(answer.address(), result, RESULT_BYTES);
  }

  private synchronized void run(Consumer<GpuStream> kernel) {
    device.gpu().use();
    kernel.accept(stream);
    stream.synchronize();
  }

  private static long address(MemorySegment memory) {
    if (RemoteWindow.isRemote(memory)) {
      throw new BraidException(
          "memory of a GPU must be on this host to be read or written from here but is on another; let its rank do it, or gather it with a collective");
    }
    return memory.address();
  }

  private static long count(DType dtype, MemorySegment memory) {
    return memory.byteSize() / dtype.bytes();
  }

  @Override
  public void close() {
    Closing.each(stream, () -> device.gpu().free(result));
  }
}
