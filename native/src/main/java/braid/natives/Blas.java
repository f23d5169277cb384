package braid.natives;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.openblas.global.openblas_nolapack;

/// OpenBLAS on off-heap memory. The library is unpacked and loaded by the first multiplication, not
/// before: a rank that multiplies nothing stays small.
///
/// JavaCPP unpacks and loads the library. The calls go through FFM, which keeps a segment alive for
/// the duration of a call.
public final class Blas {
  private Blas() {}

  /// Sets the number of threads that each multiplication of this process may use. Loads the
  /// library.
  public static void limitThreads(int threads) {
    try {
      OpenBlas.SET_NUM_THREADS.invokeExact(threads);
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// One factor of a multiplication. Stored rows begin `stride` elements apart; a `transposed`
  /// factor is stored by columns.
  public record Factor(MemorySegment segment, int stride, boolean transposed) {
    private int form() {
      return transposed ? OpenBlas.TRANSPOSED : OpenBlas.NOT_TRANSPOSED;
    }
  }

  /// The result of a multiplication: `c = scale · a · b + keep · c`. `c` is `m` × `n` without gaps,
  /// and `k` is the depth. If `keep` is 0, `c` is not read.
  public record Sum(int m, int n, int k, float scale, float keep, MemorySegment c) {}

  /// Multiplies row-major matrices.
  public static void sgemm(Factor a, Factor b, Sum sum) {
    requireSize("a", a, sum.m(), sum.k());
    requireSize("b", b, sum.k(), sum.n());
    requireSize("c", new Factor(sum.c(), sum.n(), false), sum.m(), sum.n());
    try {
      OpenBlas.SGEMM.invokeExact(
          OpenBlas.ROW_MAJOR,
          a.form(),
          b.form(),
          sum.m(),
          sum.n(),
          sum.k(),
          sum.scale(),
          a.segment(),
          a.stride(),
          b.segment(),
          b.stride(),
          sum.keep(),
          sum.c(),
          sum.n());
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Adds fp32 numbers to the same number of others.
  public static void add(MemorySegment addend, MemorySegment to) {
    long count = to.byteSize() / Float.BYTES;
    if (addend.byteSize() < to.byteSize()) {
      throw new IllegalArgumentException(
          "%d numbers need %d bytes but there are %d"
              .formatted(count, to.byteSize(), addend.byteSize()));
    }
    try {
      for (long done = 0; done < count; done += Integer.MAX_VALUE) {
        int some = (int) Math.min(count - done, Integer.MAX_VALUE);
        long skipped = done * Float.BYTES;
        OpenBlas.SAXPY.invokeExact(some, 1f, addend.asSlice(skipped), 1, to.asSlice(skipped), 1);
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// Checks sizes, because OpenBLAS does not: it would read past the end of a short segment.
  private static void requireSize(String name, Factor factor, int rows, int columns) {
    int storedRows = factor.transposed() ? columns : rows;
    int storedColumns = factor.transposed() ? rows : columns;
    long bytes =
        storedRows == 0
            ? 0
            : ((long) (storedRows - 1) * factor.stride() + storedColumns) * Float.BYTES;
    if (factor.stride() < storedColumns || factor.segment().byteSize() < bytes) {
      throw new IllegalArgumentException(
          "%s is %d x %d with rows %d apart and needs %d bytes but has %d"
              .formatted(
                  name,
                  storedRows,
                  storedColumns,
                  factor.stride(),
                  bytes,
                  factor.segment().byteSize()));
    }
  }

  /// Function handles. The library is loaded when this class is initialized, at the first call.
  @SuppressWarnings("restricted")
  private static final class OpenBlas {
    static final int ROW_MAJOR = 101;
    static final int NOT_TRANSPOSED = 111;
    static final int TRANSPOSED = 112;

    static {
      JavaCpp.prepare();
      Loader.load(openblas_nolapack.class);
    }

    static final MethodHandle SET_NUM_THREADS =
        function("openblas_set_num_threads", FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT));
    static final MethodHandle SGEMM =
        function(
            "cblas_sgemm",
            FunctionDescriptor.ofVoid(
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_FLOAT,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_FLOAT,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT));

    static final MethodHandle SAXPY =
        function(
            "cblas_saxpy",
            FunctionDescriptor.ofVoid(
                ValueLayout.JAVA_INT,
                ValueLayout.JAVA_FLOAT,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS,
                ValueLayout.JAVA_INT));

    private static MethodHandle function(String name, FunctionDescriptor descriptor) {
      return LibC.LINKER.downcallHandle(
          SymbolLookup.loaderLookup()
              .find(name)
              .orElseThrow(() -> new UnsatisfiedLinkError("OpenBLAS has no " + name)),
          descriptor);
    }
  }
}
