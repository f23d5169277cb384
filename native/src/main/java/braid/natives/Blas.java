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

  /// `c = a · b`, row by row: `a` is `m` × `k`, `b` is `k` × `n`, `c` is `m` × `n`, each without
  /// gaps between its rows except `c`, whose rows are `ldc` elements apart.
  public static void sgemm(
      int m, int n, int k, MemorySegment a, MemorySegment b, MemorySegment c, int ldc) {
    needs("a", a, m, k, k);
    needs("b", b, k, n, n);
    needs("c", c, m, n, ldc);
    try {
      Library.SGEMM.invokeExact(
          Library.ROW_MAJOR,
          Library.NOT_TRANSPOSED,
          Library.NOT_TRANSPOSED,
          m,
          n,
          k,
          1f,
          a,
          k,
          b,
          n,
          0f,
          c,
          ldc);
    } catch (Throwable e) {
      throw LibC.unexpected(e);
    }
  }

  /// OpenBLAS checks nothing: a segment that is too short would be read past its end.
  private static void needs(String name, MemorySegment segment, int rows, int columns, int ld) {
    long bytes = rows == 0 ? 0 : ((long) (rows - 1) * ld + columns) * Float.BYTES;
    if (ld < columns || segment.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "%s is %d x %d with rows %d apart and needs %d bytes but has %d"
              .formatted(name, rows, columns, ld, bytes, segment.byteSize()));
    }
  }

  /// Initialised, and with it the library loaded, when it is first asked for something.
  @SuppressWarnings("restricted")
  private static final class Library {
    static final int ROW_MAJOR = 101;
    static final int NOT_TRANSPOSED = 111;

    static {
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

    private static MethodHandle function(String name, FunctionDescriptor descriptor) {
      return LibC.LINKER.downcallHandle(
          SymbolLookup.loaderLookup()
              .find(name)
              .orElseThrow(() -> new UnsatisfiedLinkError("OpenBLAS has no " + name)),
          descriptor);
    }
  }
}
