package braid.natives.kernels;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuKernel;
import braid.natives.cuda.GpuModule;
import braid.natives.cuda.GpuStream;
import braid.natives.load.Libraries;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// All kernels, ready on one GPU, and a method to launch each. Where a grid is the caller's to
/// choose it is called `blocks`; elsewhere it is as large as helps. What has nothing to do is not
/// launched.
public final class Kernels implements AutoCloseable {
  private static final String PREFIX = "braid_";
  private static final int THREADS = 256;
  private static final int COPY_THREADS = 512;
  private static final int TMA_THREADS = 32;

  /// What a block of `braid_copy_tma` takes at once, and the stages it has for that.
  private static final int TMA_CHUNK_BYTES = 16384;

  private static final int TMA_SHARED_BYTES = 4 * TMA_CHUNK_BYTES;

  private static final int FIRST_WITH_TMA = 90;

  /// Addresses and sizes of a bulk copy are multiples of this.
  public static final int TMA_ALIGNMENT_BYTES = 16;

  /// Blocks of 256 threads that a multiprocessor holds at once.
  private static final int BLOCKS_A_MULTIPROCESSOR = 8;

  private static final List<String> PLAIN =
      List.of(
          "copy",
          "copy_rows",
          "fill_value",
          "fill_integers",
          "range",
          "compare",
          "sizes",
          "widen",
          "judge",
          "transpose",
          "widen_fp16");

  private final GpuModule module;
  private final Map<String, GpuKernel> kernels = new HashMap<>();
  private final int mostBlocks;
  private final boolean tma;

  private Kernels(Gpu gpu, GpuModule module) {
    this.module = module;
    mostBlocks = gpu.multiprocessors() * BLOCKS_A_MULTIPROCESSOR;
    tma = gpu.architecture() >= FIRST_WITH_TMA;
    names(tma).forEach(name -> kernels.put(name, module.kernel(PREFIX + name)));
    if (tma) {
      kernel("copy_tma").maxDynamicSharedBytes(TMA_SHARED_BYTES);
    }
  }

  /// Compiles them, unless the folder has them compiled already, and loads them.
  public static Kernels load(Gpu gpu, Path cacheFolder) {
    var compiler = KernelCompiler.open(Libraries.require(Libraries.Library.NVRTC).path());
    var image =
        new KernelCache(cacheFolder, System.err::println)
            .compiled(
                KernelSources.ours(), compiler, KernelCompiler.architecture(gpu.architecture()));
    var module = gpu.load(image);
    try {
      return new Kernels(gpu, module);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  static List<String> names(boolean tma) {
    return Stream.of(
            PLAIN.stream(),
            Stream.of(ReduceArguments.ANY),
            ReduceArguments.FAST.stream(),
            tma ? Stream.of("copy_tma") : Stream.<String>empty())
        .flatMap(kernels -> kernels)
        .toList();
  }

  /// The kernel of that name, without its prefix: `copy`, `reduce_bf16_bf16`.
  public GpuKernel kernel(String name) {
    var kernel = kernels.get(name);
    if (kernel == null) {
      throw new IllegalArgumentException(
          "a kernel must be one of %s but was %s"
              .formatted(kernels.keySet().stream().sorted().toList(), name));
    }
    return kernel;
  }

  /// Whether this GPU has bulk copies.
  public boolean hasTma() {
    return tma;
  }

  /// Blocks that fill the GPU once.
  public int fullGrid() {
    return mostBlocks;
  }

  /// Copies bytes of any alignment, also from and to peers, by so many workers.
  public void copy(GpuStream on, int blocks, long to, long from, long bytes) {
    if (bytes > 0) {
      kernel("copy").launch(on, blocks, COPY_THREADS, 0, to, from, bytes);
    }
  }

  /// Whether a bulk copy takes addresses and bytes like these.
  public static boolean fitsTma(long to, long from, long bytes) {
    return (to | from | bytes) % TMA_ALIGNMENT_BYTES == 0;
  }

  /// The blocks that a bulk copy makes use of: any more would only take shared memory from others.
  static int tmaBlocks(int blocks, long bytes) {
    return (int) Math.min(blocks, (bytes + TMA_CHUNK_BYTES - 1) / TMA_CHUNK_BYTES);
  }

  /// The same by bulk copies, which leave the multiprocessors' registers and threads to others and
  /// take 64 KiB of shared memory a block. At most so many blocks carry.
  public void copyTma(GpuStream on, int blocks, long to, long from, long bytes) {
    if (!fitsTma(to, from, bytes)) {
      throw new IllegalArgumentException(
          "a bulk copy needs addresses and bytes that are multiples of %d but had to=%x from=%x bytes=%d; copy takes any"
              .formatted(TMA_ALIGNMENT_BYTES, to, from, bytes));
    }
    if (bytes > 0) {
      kernel("copy_tma")
          .launch(on, tmaBlocks(blocks, bytes), TMA_THREADS, TMA_SHARED_BYTES, to, from, bytes);
    }
  }

  /// Rows that begin a pitch apart, put side by side.
  public void pack(
      GpuStream on, int blocks, long to, long from, long fromPitch, long rowBytes, long rows) {
    copyRows(on, blocks, to, rowBytes, from, fromPitch, rowBytes, rows);
  }

  /// Rows from one pitch to another.
  public void copyRows(
      GpuStream on,
      int blocks,
      long to,
      long toPitch,
      long from,
      long fromPitch,
      long rowBytes,
      long rows) {
    if (toPitch < rowBytes || fromPitch < rowBytes) {
      throw new IllegalArgumentException(
          "a pitch must be at least a row of %d bytes but they were %d and %d"
              .formatted(rowBytes, toPitch, fromPitch));
    }
    if (rowBytes > 0 && rows > 0) {
      kernel("copy_rows")
          .launch(on, blocks, THREADS, 0, to, toPitch, from, fromPitch, rowBytes, rows);
    }
  }

  /// Adds parts; [#fullGrid] blocks where nothing runs beside it.
  public void reduce(GpuStream on, int blocks, ReduceArguments what) {
    if (what.count() > 0) {
      kernel(what.kernel()).launch(on, blocks, THREADS, 0, what.bytes());
    }
  }

  public void fillValue(GpuStream on, long to, long count, ElementType type, float value) {
    if (count > 0) {
      kernel("fill_value").launch(on, grid(count), THREADS, 0, to, count, type.code(), value);
    }
  }

  /// Fills with [Integers], element i with that at place i.
  public void fillIntegers(GpuStream on, long to, long count, ElementType type, long seed) {
    if (count > 0) {
      kernel("fill_integers").launch(on, grid(count), THREADS, 0, to, count, type.code(), seed);
    }
  }

  /// Raises the fp32 number at `result` to the largest size there is, infinity for a NaN, and
  /// clears the 32-bit word after it where one is no integer. They begin as 0 and 1.
  public void range(GpuStream on, long from, long count, ElementType type, long result) {
    if (count > 0) {
      kernel("range").launch(on, grid(count), THREADS, 0, from, count, type.code(), result);
    }
  }

  /// Counts where `got` is further from what was expected, rounded to `got`'s type, than `atol` +
  /// `rtol` × |expected|; a NaN is right where one is expected. Two 64-bit words at `result` take
  /// the first place and the count; they begin as -1 and 0.
  public void compare(
      GpuStream on,
      long expected,
      ElementType expectedType,
      long got,
      ElementType gotType,
      long count,
      double atol,
      double rtol,
      long result) {
    if (count > 0) {
      kernel("compare")
          .launch(
              on,
              grid(count),
              THREADS,
              0,
              expected,
              expectedType.code(),
              got,
              gotType.code(),
              count,
              Double.doubleToRawLongBits(atol),
              Double.doubleToRawLongBits(rtol),
              result);
    }
  }

  /// The sizes of numbers, in their type.
  public void sizes(GpuStream on, long to, long from, long count, ElementType type) {
    if (count > 0) {
      kernel("sizes").launch(on, grid(count), THREADS, 0, to, from, count, type.code());
    }
  }

  /// Lowers the fp32 numbers at `low` and raises those at `high` by `share` × size + `least`, but
  /// not where the size is at most `exact`. What is not finite stays, but where sizes that are not
  /// are said to be overflows: there the interval becomes everything.
  public void widen(
      GpuStream on,
      long low,
      long high,
      long sizes,
      long count,
      float share,
      float least,
      float exact,
      boolean overflows) {
    if (count > 0) {
      kernel("widen")
          .launch(
              on,
              grid(count),
              THREADS,
              0,
              low,
              high,
              sizes,
              count,
              share,
              least,
              exact,
              overflows ? 1 : 0);
    }
  }

  /// Holds `got` to the intervals around what is expected. At `result` a 64-bit word takes the
  /// first place outside, an fp64 number the sum of squares of what `got`'s rounding does not
  /// explain, and another that of how far the intervals reach; they begin as -1, 0 and 0.
  ///
  /// @param type of what is expected and of the interval's ends
  /// @param activated whether GELU of them was stored
  /// @param outScale by which they were multiplied when they were stored
  public void judge(
      GpuStream on,
      long expected,
      long low,
      long high,
      ElementType type,
      boolean activated,
      float outScale,
      long got,
      ElementType gotType,
      long count,
      long result) {
    if (count > 0) {
      kernel("judge")
          .launch(
              on,
              grid(count),
              THREADS,
              0,
              expected,
              low,
              high,
              type.code(),
              activated ? 1 : 0,
              outScale,
              got,
              gotType.code(),
              count,
              result);
    }
  }

  /// Bytes in rows × columns, rows `stride` apart, become columns × rows without gaps.
  public void transpose(GpuStream on, long to, long from, long stride, long rows, long columns) {
    if (rows > 0 && columns > 0) {
      kernel("transpose")
          .launch(on, grid(rows * columns), THREADS, 0, to, from, stride, rows, columns);
    }
  }

  /// fp8 as fp16, exactly; strides are in elements.
  public void widenFp16(
      GpuStream on,
      long to,
      long toStride,
      long from,
      long fromStride,
      ElementType fromType,
      long rows,
      long columns) {
    if (fromType != ElementType.E4M3 && fromType != ElementType.E5M2) {
      throw new IllegalArgumentException("only fp8 is widened to fp16 but this is " + fromType);
    }
    if (rows > 0 && columns > 0) {
      kernel("widen_fp16")
          .launch(
              on,
              grid(rows * columns),
              THREADS,
              0,
              to,
              toStride,
              from,
              fromStride,
              fromType.code(),
              rows,
              columns);
    }
  }

  private int grid(long count) {
    return (int) Math.min(mostBlocks, (count + THREADS - 1) / THREADS);
  }

  /// Unloads them; nothing of it may run any more.
  @Override
  public void close() {
    module.close();
  }
}
