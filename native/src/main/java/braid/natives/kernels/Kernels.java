package braid.natives.kernels;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuKernel;
import braid.natives.cuda.GpuModule;
import braid.natives.cuda.GpuStream;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/// All kernels except for attention, loaded on one GPU, with one launch method each. A parameter
/// `blocks` sets the grid size; methods without it use as many blocks as are useful. Nothing is
/// launched for empty work.
public final class Kernels implements AutoCloseable {
  /// Prefix of the names in a module.
  static final String PREFIX = "braid_";

  private static final int THREADS = 256;
  private static final int COPY_THREADS = 512;
  private static final int TMA_THREADS = 32;

  /// Bytes per stage in a block of `braid_copy_tma`, which has four stages in shared memory.
  private static final int TMA_CHUNK_BYTES = 16384;

  private static final int TMA_SHARED_BYTES = 4 * TMA_CHUNK_BYTES;

  /// Alignment of addresses and sizes of a bulk copy.
  public static final int TMA_ALIGNMENT_BYTES = 16;

  /// Bytes of the widest access of a thread.
  private static final int WORD_BYTES = 16;

  /// Numbers that a thread adds at once, in 16 bits.
  private static final int SUMMED_PER_THREAD = 8;

  /// Blocks of 256 threads per multiprocessor.
  private static final int BLOCKS_PER_MULTIPROCESSOR = 8;

  private static final List<String> PLAIN =
      List.of(
          "copy",
          "copy_all",
          "copy_rows",
          "fill_value",
          "fill_integers",
          "fill_reals",
          "range",
          "compare",
          "sizes",
          "widen",
          "judge",
          "transpose",
          "widen_fp16");

  private final GpuModule module;
  private final Map<String, GpuKernel> kernels = new HashMap<>();

  /// By the name of a sum, the number of threads of its largest block.
  private final Map<String, Integer> mostSumThreads = new HashMap<>();

  private final int mostBlocks;

  /// Multiprocessors for the kernels of one process that wait for peers.
  private final int multiprocessors;

  private final boolean tma;

  private Kernels(Gpu gpu, GpuModule module, int processes) {
    this.module = module;
    mostBlocks = mostBlocks(gpu);
    multiprocessors = gpu.multiprocessors() / processes;
    tma = Feature.BULK_COPIES.isIn(Feature.capability(gpu.architecture()));
    names(tma).forEach(name -> kernels.put(name, module.kernel(PREFIX + name)));
    sums().forEach(name -> mostSumThreads.put(name, kernel(name).mostThreads()));
    if (tma) {
      kernel("copy_tma").maxDynamicSharedBytes(TMA_SHARED_BYTES);
    }
  }

  /// Loads the kernels of the only process on a GPU, as [#load(Gpu, Path, int)] does.
  public static Kernels load(Gpu gpu, Path cacheFolder) {
    return load(gpu, cacheFolder, 1);
  }

  /// Loads the kernels from the cache folder; compiles them if they are not there.
  ///
  /// @param processes number of processes that share the GPU and wait for each other. Under MPS
  ///   their kernels run side by side, so each may occupy its share of the GPU only
  public static Kernels load(Gpu gpu, Path cacheFolder, int processes) {
    var module = module(gpu, cacheFolder, KernelSources.ours());
    try {
      return new Kernels(gpu, module, processes);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  /// Loads a program's module from the cache folder; compiles it if it is not there.
  static GpuModule module(Gpu gpu, Path cacheFolder, KernelSources sources) {
    var compiler = KernelCompiler.open(Libraries.require(Libraries.Library.NVRTC).path());
    return gpu.load(
        new KernelCache(cacheFolder, System.err::println)
            .compiled(sources, compiler, KernelCompiler.architecture(gpu.architecture())));
  }

  /// Number of blocks of 256 threads that fill a GPU once.
  static int mostBlocks(Gpu gpu) {
    return gpu.multiprocessors() * BLOCKS_PER_MULTIPROCESSOR;
  }

  static List<String> names(boolean tma) {
    return Stream.of(PLAIN.stream(), sums(), tma ? Stream.of("copy_tma") : Stream.<String>empty())
        .flatMap(kernels -> kernels)
        .toList();
  }

  private static Stream<String> sums() {
    return Stream.concat(Stream.of(ReduceArguments.ANY), ReduceArguments.FAST.stream());
  }

  /// Returns the kernel of this name, without prefix: `copy`, `reduce_bf16_bf16`.
  public GpuKernel kernel(String name) {
    var kernel = kernels.get(name);
    if (kernel == null) {
      throw new IllegalArgumentException(
          "a kernel must be one of %s but was %s"
              .formatted(kernels.keySet().stream().sorted().toList(), name));
    }
    return kernel;
  }

  /// Returns true if this GPU supports TMA bulk copies.
  public boolean hasTma() {
    return tma;
  }

  /// Number of blocks that fill the GPU once.
  public int fullGrid() {
    return mostBlocks;
  }

  /// Copies bytes of any alignment. Either address may be in a peer's memory.
  public void copy(GpuStream stream, int blocks, long to, long from, long bytes) {
    if (bytes > 0) {
      kernel("copy").launch(stream, blocks, COPY_THREADS, 0, to, from, bytes);
    }
  }

  /// Returns true if a bulk copy supports this alignment and size.
  public static boolean fitsTma(long to, long from, long bytes) {
    return (to | from | bytes) % TMA_ALIGNMENT_BYTES == 0;
  }

  /// Number of blocks that a bulk copy can use: more would only waste shared memory.
  static int tmaBlocks(int blocks, long bytes) {
    return (int) Math.min(blocks, (bytes + TMA_CHUNK_BYTES - 1) / TMA_CHUNK_BYTES);
  }

  /// Copies with TMA bulk copies. They leave the multiprocessors' registers and threads to other
  /// kernels, but use 64 KiB of shared memory per block. `blocks` is a maximum.
  public void copyTma(GpuStream stream, int blocks, long to, long from, long bytes) {
    if (!fitsTma(to, from, bytes)) {
      throw new IllegalArgumentException(
          "a bulk copy needs addresses and bytes that are multiples of %d but had to=%x from=%x bytes=%d; copy takes any"
              .formatted(TMA_ALIGNMENT_BYTES, to, from, bytes));
    }
    if (bytes > 0) {
      kernel("copy_tma")
          .launch(stream, tmaBlocks(blocks, bytes), TMA_THREADS, TMA_SHARED_BYTES, to, from, bytes);
    }
  }

  /// Copies rows that begin `fromPitch` bytes apart into contiguous memory.
  public void pack(
      GpuStream stream, int blocks, long to, long from, long fromPitch, long rowBytes, long rows) {
    copyRows(stream, blocks, to, rowBytes, from, fromPitch, rowBytes, rows);
  }

  /// Copies rows that begin `fromPitch` bytes apart to rows that begin `toPitch` bytes apart.
  public void copyRows(
      GpuStream stream,
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
          .launch(stream, blocks, THREADS, 0, to, toPitch, from, fromPitch, rowBytes, rows);
    }
  }

  /// Adds parts element by element. Use [#fullGrid] blocks if no other kernel runs beside it.
  public void reduce(GpuStream stream, int blocks, ReduceArguments arguments) {
    if (arguments.count() > 0) {
      kernel(arguments.kernel())
          .launch(stream, blocks, THREADS, 0, arguments.bytes(), Handshake.NONE.bytes());
    }
  }

  /// Adds parts, which may be in peers' memory, between the signals of a handshake.
  public void reduce(GpuStream stream, ReduceArguments arguments, Handshake handshake) {
    int blocks = grid(arguments.count());
    int threads = THREADS;
    if (handshake.waits()) {
      blocks = sumBlocks(multiprocessors, arguments.count());
      threads =
          sumThreads(
              blocks, arguments.count(), mostSumThreads.getOrDefault(arguments.kernel(), THREADS));
    }
    kernel(arguments.kernel())
        .launch(stream, blocks, threads, 0, arguments.bytes(), handshake.bytes());
  }

  /// Number of blocks of a sum that waits for peers. It leaves half of the process's
  /// multiprocessors to kernels that the peers wait for.
  static int sumBlocks(int multiprocessors, long count) {
    return blocks(count, THREADS * SUMMED_PER_THREAD, multiprocessors / 2);
  }

  /// Number of threads of each of these blocks: more for large sums.
  static int sumThreads(int blocks, long count, int most) {
    return THREADS
        * blocks(count, blocks * THREADS * SUMMED_PER_THREAD, Math.max(1, most / THREADS));
  }

  /// Makes independent copies, to or from peers' memory, between the signals of a handshake.
  public void copyAll(GpuStream stream, CopyArguments copies, Handshake handshake) {
    int blocks = copies.count() * copyBlocks(multiprocessors, copies.count(), copies.longest());
    kernel("copy_all").launch(stream, blocks, COPY_THREADS, 0, copies.bytes(), handshake.bytes());
  }

  /// Number of blocks for each of several copies that wait for peers. Together they use an eighth
  /// of the multiprocessors: several lanes may wait at once.
  static int copyBlocks(int multiprocessors, int copies, long longestBytes) {
    return blocks(longestBytes, COPY_THREADS * WORD_BYTES, multiprocessors / 8 / copies);
  }

  private static int blocks(long work, int ofBlock, int most) {
    return Math.clamp((work + ofBlock - 1) / ofBlock, 1, Math.max(1, most));
  }

  public void fillValue(GpuStream stream, long to, long count, ElementType type, float value) {
    launch("fill_value", stream, count, to, count, type.code(), value);
  }

  /// Sets element i to the number drawn at index i.
  public void draw(
      GpuStream stream, long to, long count, ElementType type, Drawn numbers, long seed) {
    launch(numbers.kernel(), stream, count, to, count, type.code(), seed);
  }

  /// Raises the fp32 number at `result` to the largest absolute value; a NaN counts as infinity.
  /// Clears the 32-bit word after it if any value is not an integer. The caller initializes both,
  /// to 0 and 1.
  public void range(GpuStream stream, long from, long count, ElementType type, long result) {
    launch("range", stream, count, from, count, type.code(), result);
  }

  /// Counts values of `got` that differ from the expected value, rounded to `got`'s type, by more
  /// than `atol` + `rtol` × |expected|. NaN equals NaN. Two 64-bit words at `result` receive the
  /// index of the first such value and the count; the caller initializes them to -1 and 0.
  public void compare(
      GpuStream stream,
      long expected,
      ElementType expectedType,
      long got,
      ElementType gotType,
      long count,
      double atol,
      double rtol,
      long result) {
    launch(
        "compare",
        stream,
        count,
        expected,
        expectedType.code(),
        got,
        gotType.code(),
        count,
        Double.doubleToRawLongBits(atol),
        Double.doubleToRawLongBits(rtol),
        result);
  }

  /// Writes the absolute values of elements, in the elements' type.
  public void sizes(GpuStream stream, long to, long from, long count, ElementType type) {
    launch("sizes", stream, count, to, from, count, type.code());
  }

  /// Widens intervals: lowers the fp32 numbers at `low` and raises those at `high` by `share` ×
  /// size + `least`, where size is the number of the same index at `sizes`. Skips elements whose
  /// size is at most `exact`, and bounds that are infinite or NaN. With `overflows`, the interval
  /// becomes unbounded if that sum is infinite.
  public void widen(
      GpuStream stream,
      long low,
      long high,
      long sizes,
      long count,
      float share,
      float least,
      float exact,
      boolean overflows) {
    launch("widen", stream, count, low, high, sizes, count, share, least, exact, overflows ? 1 : 0);
  }

  /// Compares `got` with intervals around the expected values. Three numbers at `result`,
  /// initialized by the caller to -1, 0 and 0, receive:
  ///
  /// - a 64-bit word: the index of the first value outside its interval;
  /// - an fp64 number: the sum of squared errors, without the part due to rounding to `got`'s type;
  /// - an fp64 number: the sum of squared interval radii.
  ///
  /// @param type type of expected values and interval ends
  /// @param activated true if `got` is the GELU of the values
  /// @param outScale factor by which values were multiplied before they were stored in `got`
  public void judge(
      GpuStream stream,
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
    launch(
        "judge",
        stream,
        count,
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

  /// Transposes a matrix of bytes. Its rows begin `stride` bytes apart; the result is contiguous.
  public void transpose(
      GpuStream stream, long to, long from, long stride, long rows, long columns) {
    launch("transpose", stream, rows * columns, to, from, stride, rows, columns);
  }

  /// Converts fp8 to fp16, exactly; strides are in elements.
  public void widenFp16(
      GpuStream stream,
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
    launch(
        "widen_fp16",
        stream,
        rows * columns,
        to,
        toStride,
        from,
        fromStride,
        fromType.code(),
        rows,
        columns);
  }

  /// Launches a kernel with a thread for each of `count` elements, as far as they are useful.
  private void launch(String name, GpuStream stream, long count, Object... arguments) {
    if (count > 0) {
      kernel(name).launch(stream, grid(count), THREADS, 0, arguments);
    }
  }

  private int grid(long count) {
    return (int) Math.min(mostBlocks, (count + THREADS - 1) / THREADS);
  }

  /// Unloads the kernels. No kernel may still be running.
  @Override
  public void close() {
    module.close();
  }
}
