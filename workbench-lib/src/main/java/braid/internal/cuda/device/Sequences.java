package braid.internal.cuda.device;

import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.Matrix;
import braid.model.DType;
import braid.natives.cuda.Gpu;
import braid.natives.cudnn.AttentionPlan;
import braid.natives.cudnn.AttentionProblem;
import braid.natives.cudnn.AttentionProblem.Strides;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.UnaryOperator;

/// Sequences of a block that one call of cuDNN computes: one, or packed ones together.
///
/// @param block block that has them; of one sequence the sequence itself
/// @param problem as cuDNN is asked; empty if our own kernels compute the sequence
record Sequences(
    AttentionBlock block, List<AttentionBlock> all, Optional<AttentionProblem> problem) {
  /// Rows or keys of a tile of cuDNN.
  private static final int TILE = 128;

  /// Tiles of a call ÷ those with rows, up to which one call is faster than several: one was at 33,
  /// and several at 64 on an H200.
  private static final int MOST_TILES_PER_NEEDED = 48;

  /// Rows of a block that see any key: `count`, from `first` on.
  record Seeing(int first, int count) {
    static Seeing of(AttentionBlock block) {
      int rows = block.query().rows();
      int keys = block.key().rows();
      if (!block.spec().isMasked() || keys == 0) {
        return new Seeing(0, keys == 0 ? 0 : rows);
      }
      long shift = block.shift();
      int first = Math.clamp(-shift, 0, rows);
      int span = block.spec().span();
      int end = span == 0 ? rows : Math.clamp(keys + span - 1 - shift, 0, rows);
      return new Seeing(first, Math.max(0, end - first));
    }
  }

  /// Keys that the rows of a sequence see.
  private enum Mask {
    /// Those of the same and of earlier rows, within the window.
    CAUSAL,
    ALL,
    /// Others, which packed sequences cannot share.
    OTHER
  }

  /// Packed sequences of one kind share a call.
  ///
  /// @param span keys that a row sees if the sequence is long; 0 for no limit. Two stripes have
  ///   spans of two sizes at most.
  private record Kind(Mask mask, long span) {
    static Kind of(AttentionBlock sequence) {
      var mask = Sequences.mask(sequence);
      long window = mask == Mask.CAUSAL ? sequence.spec().window() : 0;
      return new Kind(mask, window == 0 || sequence.spec().isCausal() ? window : 2 * window - 1);
    }
  }

  /// Addresses in GPU memory of tables of packed sequences.
  ///
  /// @param operands those that cuDNN reads
  /// @param rows of a byte per row of the block, 0 for those of no sequence; 0 if there are none
  /// @param keys likewise per key
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record Tables(long[] operands, long rows, long keys) {
    static final Tables NONE = new Tables(new long[0], 0, 0);
  }

  static Sequences one(AttentionBlock sequence, Optional<AttentionProblem> problem) {
    return new Sequences(sequence, List.of(sequence), problem);
  }

  /// Returns the sequences of a block, with those together that cuDNN can compute in one call. The
  /// problem of one alone is empty if it sees no key or is of another type than cuDNN's.
  static List<Sequences> of(AttentionBlock block) {
    var bySequence = block.bySequence();
    var equal = equal(block, bySequence);
    if (equal.isPresent()) {
      return List.of(equal.get());
    }
    var byKind = new LinkedHashMap<Kind, List<AttentionBlock>>();
    for (var sequence : bySequence) {
      byKind.computeIfAbsent(Kind.of(sequence), _ -> new ArrayList<>()).add(sequence);
    }
    var type = type(block.spec().dtype());
    var sequences = new ArrayList<Sequences>();
    byKind.forEach(
        (kind, all) -> {
          if (kind.mask == Mask.OTHER || type.isEmpty()) {
            sequences.addAll(alone(all));
            return;
          }
          for (var some : calls(all)) {
            if (some.size() == 1) {
              sequences.addAll(alone(some));
            } else {
              sequences.add(
                  new Sequences(
                      block, some, Optional.of(together(block, type.get(), kind.mask, some))));
            }
          }
        });
    return sequences;
  }

  /// Returns all sequences of a block if they have equal numbers of rows and of keys, equal masks,
  /// and all rows and keys of the block: cuDNN then needs no tables.
  private static Optional<Sequences> equal(AttentionBlock block, List<AttentionBlock> all) {
    if (all.size() < 2) {
      return Optional.empty();
    }
    var first = all.getFirst();
    int rows = first.query().rows();
    int keys = first.key().rows();
    boolean areEqual =
        Math.multiplyExact(all.size(), rows) == block.query().rows()
            && Math.multiplyExact(all.size(), keys) == block.key().rows();
    for (int i = 0; i < all.size() && areEqual; i++) {
      var each = all.get(i);
      areEqual =
          each.query().rows() == rows
              && each.key().rows() == keys
              && each.spec().isMasked() == first.spec().isMasked()
              && each.spec().span() == first.spec().span()
              && (!first.spec().isMasked() || each.shift() == first.shift())
              && Seeing.of(each).count == rows
              && block.rowOf(each) == i * rows
              && block.keyOf(each) == i * keys;
    }
    return areEqual
        ? problem(first, Seeing.of(first))
            .map(one -> new Sequences(block, all, Optional.of(one.times(all.size()))))
        : Optional.empty();
  }

  /// Returns the sequences of each call. cuDNN starts as many tiles for each sequence of a call as
  /// for the longest, so sequences of very different lengths get several calls.
  private static Collection<List<AttentionBlock>> calls(List<AttentionBlock> all) {
    long most = all.stream().mapToLong(Sequences::tiles).max().orElseThrow();
    long needed = all.stream().mapToLong(Sequences::tiles).sum();
    if (all.size() * most <= MOST_TILES_PER_NEEDED * needed) {
      return List.of(all);
    }
    var byLength = new TreeMap<Integer, List<AttentionBlock>>();
    for (var each : all) {
      int length = Long.numberOfLeadingZeros(tiles(each));
      byLength.computeIfAbsent(length, _ -> new ArrayList<>()).add(each);
    }
    return byLength.values();
  }

  private static long tiles(AttentionBlock sequence) {
    return Math.ceilDiv(Math.max(sequence.query().rows(), sequence.key().rows()), TILE);
  }

  private static List<Sequences> alone(List<AttentionBlock> all) {
    return all.stream().map(each -> one(each, problem(each, Seeing.of(each)))).toList();
  }

  boolean haveOneRowEach() {
    return all.stream().allMatch(each -> each.query().rows() == 1);
  }

  /// Returns these sequences with a change of the problem, if they have one.
  Sequences with(UnaryOperator<AttentionProblem> change) {
    return new Sequences(block, all, problem.map(change));
  }

  /// Returns each of these sequences alone.
  List<Sequences> alone() {
    return alone(all);
  }

  private static Mask mask(AttentionBlock sequence) {
    if (Seeing.of(sequence).count != sequence.query().rows()) {
      return Mask.OTHER;
    }
    var spec = sequence.spec();
    if (!spec.isMasked()) {
      return Mask.ALL;
    }
    long shift = sequence.shift();
    if (shift == 0) {
      return Mask.CAUSAL;
    }
    boolean all =
        shift >= sequence.key().rows() - 1
            && (spec.span() == 0 || shift + sequence.query().rows() <= spec.span());
    return all ? Mask.ALL : Mask.OTHER;
  }

  private static AttentionProblem together(
      AttentionBlock block, AttentionProblem.Type type, Mask mask, List<AttentionBlock> all) {
    return problem(
        block,
        type,
        all.stream().mapToInt(each -> each.query().rows()).max().orElseThrow(),
        all.stream().mapToInt(each -> each.key().rows()).max().orElseThrow(),
        mask == Mask.CAUSAL,
        0,
        all.stream().mapToInt(each -> each.spec().span()).max().orElseThrow(),
        new AttentionProblem.Sequences(
            all.size(), block.query().rows(), block.key().rows(), /* areEqual= */ false));
  }

  /// @param shift the last key that the first row sees, if there is a mask
  /// @param span number of keys that a row sees, if there is a mask; 0 for no limit
  private static AttentionProblem problem(
      AttentionBlock block,
      AttentionProblem.Type type,
      int rows,
      int keys,
      boolean masked,
      long shift,
      int span,
      AttentionProblem.Sequences sequences) {
    var spec = block.spec();
    return new AttentionProblem(
        type,
        spec.heads(),
        spec.kvHeads(),
        spec.headSize(),
        rows,
        keys,
        masked,
        Math.toIntExact(masked ? shift : 0),
        masked ? span : 0,
        spec.scale(),
        sequences,
        new Strides(gapped(block.query()), gapped(block.key()), gapped(block.value()), 0, 0, 0, 0));
  }

  /// Returns the same problem with the strides of gradients, those in 16 bits, which cuDNN writes
  /// where they are.
  static AttentionProblem withGradients(AttentionProblem problem, AttentionGradientBlock gradient) {
    var strides = problem.strides();
    return problem.with(
        new Strides(
            strides.query(),
            strides.key(),
            strides.value(),
            gapped(gradient.outputGradient()),
            written(gradient.queryGradient()),
            written(gradient.keyGradient()),
            written(gradient.valueGradient())));
  }

  private static long written(Matrix gradient) {
    return CudnnAttention.isNarrow(gradient) ? gapped(gradient) : 0;
  }

  /// Returns the stride of a matrix; 0 without gaps.
  private static long gapped(Matrix matrix) {
    return matrix.stride() == matrix.columns() ? 0 : matrix.stride();
  }

  /// Returns the problem of the rows of a sequence that see any key; empty if there are none or
  /// cuDNN does not have its type. A mask that hides nothing is left out, so that blocks of one
  /// size share a plan.
  static Optional<AttentionProblem> problem(AttentionBlock block, Seeing seeing) {
    var spec = block.spec();
    int keys = block.key().rows();
    long shift = block.shift() + seeing.first;
    boolean masked = spec.isMasked() && (shift < keys - 1 || spec.window() > 0);
    if (seeing.count == 0) {
      return Optional.empty();
    }
    var one = new AttentionProblem.Sequences(1, seeing.count, keys, /* areEqual= */ true);
    return type(spec.dtype())
        .map(type -> problem(block, type, seeing.count, keys, masked, shift, spec.span(), one));
  }

  private static Optional<AttentionProblem.Type> type(DType dtype) {
    return switch (dtype) {
      case BF16 -> Optional.of(AttentionProblem.Type.BF16);
      case FP16 -> Optional.of(AttentionProblem.Type.FP16);
      default -> Optional.empty();
    };
  }

  /// Returns whether one call computes several sequences.
  boolean areSeveral() {
    return all.size() > 1;
  }

  /// Returns whether tables say where each sequence is.
  boolean arePacked() {
    return problem.isPresent() && problem.get().sequences().arePacked();
  }

  /// Rows of each sequence, in which cuDNN's statistics are head by head; 0 if they are row by row.
  int length() {
    return arePacked() ? 0 : problem.orElseThrow().rows();
  }

  /// Rows that are computed: those of the block if there are several sequences, else those that see
  /// a key.
  Seeing rows() {
    return areSeveral() ? new Seeing(0, block.query().rows()) : Seeing.of(block);
  }

  /// Number of rows that see a key.
  int seeingRows() {
    return all.stream().mapToInt(each -> Seeing.of(each).count).sum();
  }

  /// Returns whether all rows of a block are rows of these sequences that see a key.
  boolean haveAllRowsOf(AttentionBlock block) {
    return seeingRows() == block.query().rows();
  }

  /// Returns whether all keys of a block are keys of these sequences.
  boolean haveAllKeysOf(AttentionBlock block) {
    return all.stream().mapToInt(each -> each.key().rows()).sum() == block.key().rows();
  }

  /// Writes the tables to GPU memory; of one sequence there are none.
  Tables tables(Gpu gpu, Scratch scratch) {
    if (!arePacked()) {
      return Tables.NONE;
    }
    try (var arena = Arena.ofConfined()) {
      var host = tables(arena);
      long bytes = host.stream().mapToLong(each -> aligned(each.byteSize())).sum();
      var all = arena.allocate(bytes, AttentionPlan.OPERAND_ALIGNMENT_BYTES);
      long address = scratch.allocate(bytes);
      var addresses = new long[host.size()];
      long index = 0;
      for (int i = 0; i < addresses.length; i++) {
        all.asSlice(index).copyFrom(host.get(i));
        addresses[i] = address + index;
        index += aligned(host.get(i).byteSize());
      }
      gpu.copy(address, all.address(), bytes);
      int operands = addresses.length - 2;
      return new Tables(
          Arrays.copyOf(addresses, operands),
          haveAllRowsOf(block) ? 0 : addresses[operands],
          haveAllKeysOf(block) ? 0 : addresses[operands + 1]);
    }
  }

  private static long aligned(long bytes) {
    long unit = AttentionPlan.OPERAND_ALIGNMENT_BYTES;
    return Math.ceilDiv(bytes, unit) * unit;
  }

  /// Returns the tables that cuDNN reads, in the order of its operands, and then those of a byte
  /// per row and per key.
  List<MemorySegment> tables(Arena arena) {
    int count = all.size();
    long columns = block.query().columns();
    long kvColumns = block.key().columns();
    var rows = arena.allocate(ValueLayout.JAVA_INT, count);
    var keys = arena.allocate(ValueLayout.JAVA_INT, count);
    var inQuery = arena.allocate(ValueLayout.JAVA_LONG, count + 1L);
    var inKey = arena.allocate(ValueLayout.JAVA_LONG, count + 1L);
    var inStatistics = arena.allocate(ValueLayout.JAVA_LONG, count + 1L);
    var ofRows = arena.allocate(block.query().rows());
    var ofKeys = arena.allocate(block.key().rows());
    long row = 0;
    long key = 0;
    for (int i = 0; i <= count; i++) {
      if (i < count) {
        row = block.rowOf(all.get(i));
        key = block.keyOf(all.get(i));
      }
      inQuery.setAtIndex(ValueLayout.JAVA_LONG, i, row * columns);
      inKey.setAtIndex(ValueLayout.JAVA_LONG, i, key * kvColumns);
      inStatistics.setAtIndex(ValueLayout.JAVA_LONG, i, row * block.spec().heads());
      if (i < count) {
        int rowCount = all.get(i).query().rows();
        int keyCount = all.get(i).key().rows();
        rows.setAtIndex(ValueLayout.JAVA_INT, i, rowCount);
        keys.setAtIndex(ValueLayout.JAVA_INT, i, keyCount);
        ofRows.asSlice(row, rowCount).fill((byte) 1);
        ofKeys.asSlice(key, keyCount).fill((byte) 1);
        row += rowCount;
        key += keyCount;
      }
    }
    return List.of(rows, keys, inQuery, inKey, inStatistics, ofRows, ofKeys);
  }
}
