package braid.natives;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.openblas.global.openblas_nolapack;

/// OpenBLAS on memory that is ours. The library is unpacked and loaded by the first multiplication,
/// not before: a rank that multiplies nothing stays small.
///
/// JavaCPP brings the library and loads it; the calls go through FFM, which checks that a segment
/// is alive and keeps it so for as long as the call takes.
public final class Blas {
  private Blas() {}

  /// Threads each multiplication of this process may use. Loads the library.
  public static void limitThreads(int threads) {
    try {
      Library.SET_NUM_THREADS.invokeExact(threads);
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// One side of a multiplication: stored rows begin `stride` elements apart; what is `transposed`
  /// is stored by columns.
  public record Factor(MemorySegment segment, int stride, boolean transposed) {
    private int form() {
      return transposed ? Library.TRANSPOSED : Library.NOT_TRANSPOSED;
    }
  }

  /// What a multiplication comes to: `c = scale · a · b + keep · c`, `m` × `n` without gaps, over
  /// the depth `k`. Where `keep` is 0, `c` is not read.
  public record Sum(int m, int n, int k, float scale, float keep, MemorySegment c) {}

  /// Multiplies, row by row.
  public static void sgemm(Factor a, Factor b, Sum sum) {
    needs("a", a, sum.m(), sum.k());
    needs("b", b, sum.k(), sum.n());
    needs("c", new Factor(sum.c(), sum.n(), false), sum.m(), sum.n());
    try {
      Library.SGEMM.invokeExact(
          Library.ROW_MAJOR,
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

  /// Adds fp32 numbers to as many others.
  public static void add(MemorySegment what, MemorySegment to) {
    long count = to.byteSize() / Float.BYTES;
    if (what.byteSize() < to.byteSize()) {
      throw new IllegalArgumentException(
          "%d numbers need %d bytes but there are %d"
              .formatted(count, to.byteSize(), what.byteSize()));
    }
    try {
      for (long done = 0; done < count; done += Integer.MAX_VALUE) {
        int some = (int) Math.min(count - done, Integer.MAX_VALUE);
        long skipped = done * Float.BYTES;
        Library.SAXPY.invokeExact(some, 1f, what.asSlice(skipped), 1, to.asSlice(skipped), 1);
      }
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// OpenBLAS checks nothing: a segment that is too short would be read past its end.
  private static void needs(String name, Factor factor, int rows, int columns) {
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

  /// Initialised, and with it the library loaded, when it is first asked for something.
  @SuppressWarnings("restricted")
  private static final class Library {
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
