package braid.natives.kernels;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import java.util.stream.Stream;

/// Resources for kernel checks: a stream, guarded buffers, and the results so far.
final class CheckBench implements AutoCloseable {
  /// Size of the largest buffer of a check.
  private static final int STAGING_BYTES = 8 << 20;

  private final Gpu gpu;
  private final Kernels kernels;
  private final AttentionKernels attention;
  private final GpuStream stream;
  private final long staging;
  private final List<KernelChecks.Result> results = new ArrayList<>();

  private final Consumer<KernelChecks.Result> onResult;

  /// @param onResult receives each result at once
  CheckBench(
      Gpu gpu,
      Kernels kernels,
      AttentionKernels attention,
      Consumer<KernelChecks.Result> onResult) {
    this.onResult = onResult;
    this.gpu = gpu;
    this.kernels = kernels;
    this.attention = attention;
    stream = gpu.stream(gpu.leastPriority());
    staging = gpu.allocatePinned(STAGING_BYTES);
  }

  Gpu gpu() {
    return gpu;
  }

  Kernels kernels() {
    return kernels;
  }

  AttentionKernels attention() {
    return attention;
  }

  GpuStream stream() {
    return stream;
  }

  List<KernelChecks.Result> results() {
    return List.copyOf(results);
  }

  /// Runs a check and keeps its result: empty if correct, else the first wrong case.
  void check(String kernel, String title, Supplier<Optional<String>> check) {
    Optional<String> wrong;
    try {
      wrong = check.get();
    } catch (RuntimeException e) {
      wrong = Optional.of(e.toString());
    }
    var result = new KernelChecks.Result(kernel, title, wrong.isEmpty(), wrong.orElse(""));
    results.add(result);
    onResult.accept(result);
  }

  /// Returns what is wrong of the first wrong case, behind its name; empty if all are right.
  static <T> Optional<String> firstWrong(Stream<T> cases, Function<T, Optional<String>> check) {
    return cases.flatMap(each -> check.apply(each).map((each + ": ")::concat).stream()).findFirst();
  }

  /// Returns numbers as a type stores them.
  static byte[] bytes(ElementType type, int count, IntToDoubleFunction numbers) {
    var bytes = new byte[count * type.bytes()];
    var segment = MemorySegment.ofArray(bytes);
    for (int i = 0; i < count; i++) {
      type.store(segment, i, (float) numbers.applyAsDouble(i));
    }
    return bytes;
  }

  Buffer buffer(long bytes, int shift) {
    return new Buffer(bytes, shift);
  }

  /// GPU memory whose address is `shift` bytes after a multiple of 256, between guard bytes that
  /// detect writes outside the buffer. Initially filled with guard bytes.
  final class Buffer implements AutoCloseable {
    static final byte GUARD = 0x5a;
    private static final int GUARD_BYTES = 256;

    private final long bytes;
    private final int shift;
    private final long whole;

    private Buffer(long bytes, int shift) {
      this.bytes = bytes;
      this.shift = shift;
      whole = gpu.allocate(wholeBytes());
      gpu.fill(whole, GUARD, wholeBytes());
    }

    private long wholeBytes() {
      return 2L * GUARD_BYTES + shift + bytes;
    }

    long address() {
      return whole + GUARD_BYTES + shift;
    }

    Buffer put(byte[] content) {
      write(address(), content);
      return this;
    }

    /// Returns the content after all work of the stream.
    byte[] get() {
      stream.synchronize();
      return read(address(), bytes);
    }

    MemorySegment segment() {
      return MemorySegment.ofArray(get());
    }

    /// Returns an error if bytes outside the buffer were written.
    Optional<String> guards() {
      stream.synchronize();
      return untouched(whole, GUARD_BYTES + shift) && untouched(address() + bytes, GUARD_BYTES)
          ? Optional.empty()
          : Optional.of("bytes outside the buffer were written");
    }

    /// Returns an error unless the buffer has this content and nothing outside it was written.
    Optional<String> holds(byte[] expected) {
      int index = Arrays.mismatch(expected, get());
      return index < 0
          ? guards()
          : Optional.of("byte %d of %d is wrong".formatted(index, expected.length));
    }

    private boolean untouched(long address, long count) {
      var found = read(address, count);
      for (byte each : found) {
        if (each != GUARD) {
          return false;
        }
      }
      return true;
    }

    @Override
    public void close() {
      gpu.free(whole);
    }
  }

  /// Writes bytes into the GPU's memory, independently of all streams.
  void write(long address, byte[] content) {
    MemorySegment.copy(
        MemorySegment.ofArray(content), 0, pinned(content.length), 0, content.length);
    gpu.copy(address, staging, content.length);
  }

  /// Reads bytes of the GPU's memory, independently of all streams.
  byte[] read(long address, long count) {
    gpu.copy(staging, address, count);
    var found = new byte[Math.toIntExact(count)];
    MemorySegment.copy(pinned(count), 0, MemorySegment.ofArray(found), 0, count);
    return found;
  }

  @SuppressWarnings("restricted")
  private MemorySegment pinned(long bytes) {
    if (bytes > STAGING_BYTES) {
      throw new IllegalArgumentException(
          "a buffer must be of at most %d bytes but was of %d".formatted(STAGING_BYTES, bytes));
    }
    return MemorySegment.ofAddress(staging).reinterpret(bytes);
  }

  @Override
  public void close() {
    stream.close();
    gpu.freePinned(staging);
  }
}
