package braid.natives.kernels;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuKernel;
import braid.natives.cuda.GpuModule;
import braid.natives.cuda.GpuStream;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/// The kernels of attention, loaded on one GPU. Nothing is launched for empty work.
public final class AttentionKernels implements AutoCloseable {
  private static final String GRADIENT_STATISTICS = "attention_gradient_statistics";
  private static final String MERGE = "attention_merge";
  private static final String ROUND = "attention_round";
  private static final String RESTORE = "attention_restore";
  private static final String FOLD = "attention_fold_";
  private static final String FOLD_STATISTICS = FOLD + "stats";
  private static final String STATISTICS = "attention_stats";
  private static final String ADD = "attention_add_";
  private static final int MERGE_THREADS = 256;

  /// Rows of a head that a block merges at once, one per warp.
  private static final int MERGE_ROWS = MERGE_THREADS / 32;

  private final GpuModule module;
  private final Map<String, GpuKernel> kernels = new HashMap<>();
  private final int mostBlocks;

  private AttentionKernels(Gpu gpu, GpuModule module) {
    this.module = module;
    this.mostBlocks = Kernels.mostBlocks(gpu);
    names().forEach(name -> kernels.put(name, module.kernel(Kernels.PREFIX + name)));
  }

  /// Loads the kernels from the cache folder; compiles them if they are not there, which takes
  /// several seconds.
  public static AttentionKernels load(Gpu gpu, Path cacheFolder) {
    var module = Kernels.module(gpu, cacheFolder, KernelSources.attention());
    try {
      return new AttentionKernels(gpu, module);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  static List<String> names() {
    return Stream.concat(
            Stream.concat(AttentionArguments.kernels(), AttentionGradientArguments.all()),
            Stream.of(
                GRADIENT_STATISTICS,
                MERGE,
                ROUND,
                RESTORE,
                FOLD_STATISTICS,
                STATISTICS,
                of(FOLD, ElementType.BF16),
                of(FOLD, ElementType.FP16),
                of(ADD, ElementType.BF16),
                of(ADD, ElementType.FP16)))
        .toList();
  }

  private GpuKernel kernel(String name) {
    return Objects.requireNonNull(kernels.get(name));
  }

  /// Computes attention.
  public void attend(GpuStream stream, AttentionArguments arguments) {
    if (arguments.blocks() > 0) {
      for (var bytes : arguments.launches()) {
        kernel(arguments.kernel())
            .launch(stream, arguments.blocks(), AttentionArguments.THREADS, 0, bytes);
      }
    }
  }

  /// Computes the gradients of attention. Every run has the same results.
  public void differentiate(GpuStream stream, AttentionGradientArguments arguments) {
    if (arguments.count() > 0) {
      int blocks = (int) Math.min(mostBlocks, Math.ceilDiv(arguments.count(), MERGE_ROWS));
      kernel(GRADIENT_STATISTICS).launch(stream, blocks, MERGE_THREADS, 0, arguments.bytes());
    }
    for (var each : arguments.launches()) {
      kernel(each.kernel())
          .launch(stream, each.blocks(), AttentionArguments.THREADS, 0, each.bytes());
    }
  }

  /// Merges attention of the same rows to different keys.
  public void merge(GpuStream stream, AttentionMergeArguments arguments) {
    if (arguments.count() > 0) {
      int blocks = (int) Math.min(mostBlocks, Math.ceilDiv(arguments.count(), MERGE_ROWS));
      kernel(MERGE).launch(stream, blocks, MERGE_THREADS, 0, arguments.bytes());
    }
  }

  /// Heads, and the same heads rounded to e4m3, each row of a head with its scale after it.
  ///
  /// @param type type of the numbers of `wide`: 32 or 16 bits
  /// @param wide address
  /// @param wideStride numbers from one row to the next
  /// @param rounded address
  /// @param roundedStride bytes from one row to the next
  public record Heads(
      ElementType type,
      long wide,
      long wideStride,
      long rounded,
      long roundedStride,
      long rows,
      int heads,
      int headSize) {}

  /// Rounds heads, or restores rounded ones. Numbers that rounding made larger than the largest of
  /// their type are restored as that.
  public void recode(GpuStream stream, Heads heads, boolean rounds) {
    long count = heads.rows * heads.heads;
    if (count > 0) {
      int blocks = (int) Math.min(mostBlocks, Math.ceilDiv(count, MERGE_ROWS));
      kernel(rounds ? ROUND : RESTORE)
          .launch(
              stream,
              blocks,
              MERGE_THREADS,
              0,
              heads.wide,
              heads.wideStride,
              heads.type.code(),
              heads.rounded,
              heads.roundedStride,
              count,
              heads.heads,
              heads.headSize);
    }
  }

  /// Rows of a head that a library computed: output in a 16-bit type, and statistics.
  ///
  /// @param output address, of rows without gaps
  /// @param stats address
  /// @param rows number of rows
  /// @param length rows of each sequence, in which the statistics are head by head; 0 if they are
  ///   row by row
  /// @param seeing address of a byte per row, 0 for those without keys; 0 if all rows have keys
  public record Computed(
      ElementType type, long output, long stats, int rows, int length, long seeing) {}

  /// A result, of rows without gaps.
  ///
  /// @param earlier address of the output by other keys, in fp32; 0 to begin. May be that of the
  ///   output
  /// @param isNarrow true if the output is in the type of what is computed, false if in fp32
  public record Result(long earlier, long output, boolean isNarrow, long lse) {}

  /// Takes computed attention into a result. If there are no earlier keys, the result begins with
  /// it, and its other rows are without keys.
  ///
  /// @param first row of the result that is the first computed one
  /// @param rows number of rows of the result
  public void fold(
      GpuStream stream,
      Computed computed,
      int first,
      int rows,
      int heads,
      int headSize,
      Result result) {
    long count = (long) rows * heads;
    if (count > 0) {
      int blocks = (int) Math.min(mostBlocks, Math.ceilDiv(count, MERGE_ROWS));
      kernel(of(FOLD, computed.type))
          .launch(
              stream,
              blocks,
              MERGE_THREADS,
              0,
              computed.output,
              computed.stats,
              result.earlier,
              result.output,
              result.lse,
              rows,
              first,
              computed.rows,
              heads,
              headSize,
              result.isNarrow ? 1 : 0,
              computed.length,
              computed.seeing);
    }
  }

  /// Takes the statistics of what is computed into a result that begins with them. The output of
  /// these rows is where it belongs.
  ///
  /// @param first row of the result that is the first computed one
  /// @param rows number of rows of the result
  public void foldStatistics(
      GpuStream stream, Computed computed, int first, int rows, int heads, long lse) {
    long count = (long) rows * heads;
    if (count > 0) {
      kernel(FOLD_STATISTICS)
          .launch(
              stream,
              blocks(count),
              MERGE_THREADS,
              0,
              computed.stats,
              lse,
              rows,
              first,
              computed.rows,
              heads,
              computed.length,
              computed.seeing);
    }
  }

  /// Writes the LSE of rows head by head in each sequence, as cuDNN reads it.
  ///
  /// @param length rows of each sequence
  public void statistics(GpuStream stream, long lse, long stats, int rows, int heads, int length) {
    long count = (long) rows * heads;
    if (count > 0) {
      kernel(STATISTICS)
          .launch(stream, blocks(count), MERGE_THREADS, 0, lse, stats, rows, heads, length);
    }
  }

  /// Rows of a 16-bit type that a library computed, without gaps.
  ///
  /// @param part address
  /// @param columns numbers of a row, a multiple of 4
  /// @param computed address of a byte per row, 0 for those that are not; 0 if all are
  public record Part(ElementType type, long part, int rows, int columns, long computed) {}

  /// Adds computed rows to fp32 sums, or begins these with them and with 0 in the other rows.
  ///
  /// @param stride numbers from one row of the sums to the next, a multiple of 4
  public void add(GpuStream stream, Part part, long sum, long stride, boolean continued) {
    long count = (long) part.rows * part.columns;
    if (count > 0) {
      kernel(of(ADD, part.type))
          .launch(
              stream,
              blocks(count / 4),
              MERGE_THREADS,
              0,
              part.part,
              sum,
              count,
              continued ? 1 : 0,
              part.columns,
              part.computed,
              stride);
    }
  }

  private int blocks(long threads) {
    return (int) Math.min(mostBlocks, Math.ceilDiv(threads, MERGE_THREADS));
  }

  private static String of(String kernel, ElementType type) {
    return kernel + type.name().toLowerCase(Locale.ROOT);
  }

  /// Unloads the kernels. No kernel may still be running.
  @Override
  public void close() {
    module.close();
  }
}
