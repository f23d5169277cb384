package braid.internal.cuda.device;

import braid.internal.rank.AttentionEngine;
import braid.internal.rank.Closing;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Matrix;
import braid.model.BraidException;
import braid.model.DType;
import braid.natives.cuda.Gpu;
import braid.natives.cudnn.AttentionPlan;
import braid.natives.cudnn.AttentionProblem;
import braid.natives.cudnn.Cudnn;
import braid.natives.kernels.AttentionGradientArguments;
import braid.natives.kernels.AttentionKernels;
import braid.natives.load.BraidNativeMissing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Attention on a GPU and its gradients: by cuDNN where it is present and computes the block, else
/// by our own kernels.
///
/// cuDNN writes the output in its 16-bit type. Our kernel then takes it, with its statistics, into
/// the result, which is accumulated in fp32:
///
/// ```
/// cuDNN   query, key, value -> scratch: output in 16 bits, statistics
/// fold    scratch           -> result: output, LSE; merged if the block is continued
/// ```
///
/// Gradients by cuDNN take the same way; our own kernels add theirs to the fp32 sums themselves.
public final class Attender implements AutoCloseable {
  private final Gpu gpu;
  private final AttentionKernels kernels;
  private final AttentionEngine engine;
  private final @Nullable Cudnn cudnn;
  private final String missing;

  /// A prepared block.
  ///
  /// @param by addition to the names of the block's work; empty for our own kernel
  public record Prepared(Optional<String> by, Launch launch) {}

  /// Rows of a block that see any key: `count`, from `first` on.
  record Seeing(int first, int count) {
    static Seeing of(AttentionBlock block) {
      int rows = block.query().rows();
      int keys = block.key().rows();
      if (!block.spec().isCausal() || keys == 0) {
        return new Seeing(0, keys == 0 ? 0 : rows);
      }
      long shift = block.queryPosition() - block.keyPosition();
      int first = Math.clamp(-shift, 0, rows);
      int window = block.spec().window();
      int end = window == 0 ? rows : Math.clamp(keys + window - 1 - shift, 0, rows);
      return new Seeing(first, Math.max(0, end - first));
    }
  }

  Attender(Gpu gpu, AttentionKernels kernels, AttentionEngine engine) {
    this.gpu = gpu;
    this.kernels = kernels;
    this.engine = engine;
    Cudnn found = null;
    var why = "";
    if (engine != AttentionEngine.OWN) {
      try {
        found = Cudnn.open(gpu);
      } catch (BraidNativeMissing e) {
        why = String.valueOf(e.getMessage());
      }
    }
    this.cudnn = found;
    this.missing = why;
  }

  public AttentionKernels kernels() {
    return kernels;
  }

  /// Prepares a block on one stream: chooses the engine and allocates scratch memory. The returned
  /// launch only enqueues. Packed sequences are computed one after another by cuDNN, and together
  /// by our own kernel.
  ///
  /// @throws BraidException if cuDNN is required and cannot compute the block
  public Prepared prepare(AttentionBlock block, Scratch scratch) {
    var all = block.bySequence().stream().map(sequence -> prepareOne(sequence, scratch)).toList();
    if (all.size() == 1) {
      return all.getFirst();
    }
    var by = all.stream().flatMap(each -> each.by().stream()).findFirst();
    if (by.isPresent()) {
      return new Prepared(by, on -> all.forEach(each -> each.launch().on(on)));
    }
    var arguments = Arguments.of(block, tables(block, scratch));
    return new Prepared(Optional.empty(), on -> kernels.attend(on, arguments));
  }

  /// Returns tables in GPU memory of the pairs of a packed block.
  private Arguments.Tables tables(AttentionBlock block, Scratch scratch) {
    try (var arena = Arena.ofConfined()) {
      var pairs = Pairs.of(block, arena);
      long address = scratch.allocate(pairs.all.byteSize());
      gpu.copy(address, pairs.all.address(), pairs.all.byteSize());
      long first = pairs.all.address();
      return new Arguments.Tables(
          address,
          address + pairs.seeing.address() - first,
          address + pairs.tokens.address() - first,
          address + pairs.queryTokens.address() - first);
    }
  }

  /// Tables of a packed block: of the keys that each row sees, of the rows that see each key, and
  /// of keys and rows that are no padding.
  record Pairs(
      MemorySegment all,
      MemorySegment seen,
      MemorySegment seeing,
      MemorySegment tokens,
      MemorySegment queryTokens) {
    static Pairs of(AttentionBlock block, Arena arena) {
      int rows = block.query().rows();
      int keys = block.key().rows();
      long seenBytes = (long) rows * 2 * Integer.BYTES;
      long seeingBytes = (long) keys * 2 * Integer.BYTES;
      var all = arena.allocate(seenBytes + seeingBytes + keys + rows, Long.BYTES);
      var pairs =
          new Pairs(
              all,
              all.asSlice(0, seenBytes),
              all.asSlice(seenBytes, seeingBytes),
              all.asSlice(seenBytes + seeingBytes, keys),
              all.asSlice(seenBytes + seeingBytes + keys, rows));
      for (int row = 0; row < rows; row++) {
        int first = Math.clamp(block.firstSeen(row), 0, keys);
        int end = Math.clamp(block.endSeen(row), 0, keys);
        put(pairs.seen, row, first, end);
        pairs.queryTokens.set(ValueLayout.JAVA_BYTE, row, (byte) (first < end ? 1 : 0));
      }
      int first = 0;
      int end = 0;
      for (int key = 0; key < keys; key++) {
        while (first < rows && block.endSeen(first) <= key) {
          first++;
        }
        while (end < rows && block.firstSeen(end) <= key) {
          end++;
        }
        put(pairs.seeing, key, first, end);
        pairs.tokens.set(
            ValueLayout.JAVA_BYTE, key, (byte) (block.skipPadding(key) == key ? 1 : 0));
      }
      return pairs;
    }

    private static void put(MemorySegment table, int at, int first, int end) {
      table.setAtIndex(ValueLayout.JAVA_INT, 2L * at, first);
      table.setAtIndex(ValueLayout.JAVA_INT, 2L * at + 1, end);
    }
  }

  private Prepared prepareOne(AttentionBlock block, Scratch scratch) {
    var seeing = Seeing.of(block);
    var problem = byCudnn(block, seeing, each -> cudnn().cannot(each));
    if (problem.isPresent()) {
      return byCudnn(block, seeing, problem.get(), scratch);
    }
    var arguments = Arguments.of(block, Arguments.Tables.NONE);
    return new Prepared(Optional.empty(), on -> kernels.attend(on, arguments));
  }

  /// Returns the problem of a block that cuDNN computes; empty if our own kernels do.
  ///
  /// @param cannot returns why cuDNN cannot solve a problem
  /// @throws BraidException if cuDNN is required and cannot compute the block
  private Optional<AttentionProblem> byCudnn(
      AttentionBlock block, Seeing seeing, Function<AttentionProblem, Optional<String>> cannot) {
    // Rows without keys have no work for cuDNN.
    if (seeing.count == 0 || engine == AttentionEngine.OWN) {
      return Optional.empty();
    }
    var problem = problem(block, seeing);
    var refusal =
        problem.isEmpty()
            ? Optional.of(
                "cuDNN's attention is in bf16 or fp16 and dtype is " + block.spec().dtype())
            : cudnn == null ? Optional.of(missing) : cannot.apply(problem.get());
    if (refusal.isPresent() && engine == AttentionEngine.CUDNN) {
      throw new BraidException(
          "BRAID_ATTENTION is cudnn but %s; unset it, or set it to own".formatted(refusal.get()));
    }
    return refusal.isPresent() ? Optional.empty() : problem;
  }

  /// Prepares the gradients of a block, by the same choice of an engine. cuDNN writes them in its
  /// 16-bit type, and our kernel adds them to the fp32 sums. Gradients that begin without all of
  /// their rows begin with 0. By default cuDNN sums the gradient of a query in any order, so its
  /// last bits may differ from run to run; its deterministic form needs memory for rows × keys of
  /// every head. Our own kernels have the same results in every run.
  ///
  /// @throws BraidException if cuDNN is required and cannot compute them
  public Prepared prepare(AttentionGradientBlock gradient, Scratch scratch) {
    var block = gradient.block();
    var sequences = block.bySequence().stream().filter(each -> Seeing.of(each).count > 0).toList();
    var problems =
        sequences.stream()
            .map(
                each ->
                    byCudnn(
                        each,
                        Seeing.of(each),
                        problem -> cudnn().cannotBackward(problem, gradient.deterministic())))
            .toList();
    if (problems.stream().allMatch(Optional::isEmpty)) {
      return new Prepared(
          Optional.empty(),
          ownBackward(gradient, gradient.continuesQuery(), gradient.continuesKeys(), scratch));
    }
    // One block of the same rows and keys, all of which take part.
    boolean whole =
        sequences.size() == 1
            && sequences.getFirst().query().rows() == block.query().rows()
            && sequences.getFirst().key().rows() == block.key().rows();
    boolean allRows = whole && Seeing.of(sequences.getFirst()).count == block.query().rows();
    boolean addsQuery = gradient.continuesQuery() || !allRows;
    boolean addsKeys = gradient.continuesKeys() || !whole;
    var launches = new ArrayList<Launch>();
    if (!gradient.continuesQuery() && !allRows) {
      launches.add(clearing(gradient.queryGradient()));
    }
    if (!gradient.continuesKeys() && !whole) {
      launches.add(clearing(gradient.keyGradient()));
      launches.add(clearing(gradient.valueGradient()));
    }
    for (int i = 0; i < sequences.size(); i++) {
      var each = gradient.of(sequences.get(i));
      launches.add(
          problems
              .get(i)
              .map(problem -> backward(each, problem, addsQuery, addsKeys, scratch))
              .orElseGet(() -> ownBackward(each, addsQuery, addsKeys, scratch)));
    }
    return new Prepared(Optional.of(" by cuDNN"), on -> launches.forEach(launch -> launch.on(on)));
  }

  private Launch ownBackward(
      AttentionGradientBlock gradient, boolean addsQuery, boolean addsKeys, Scratch scratch) {
    var block = gradient.block();
    var tables = block.spec().packing().isSingle() ? Arguments.Tables.NONE : tables(block, scratch);
    long statistics =
        scratch.take(
            AttentionGradientArguments.statisticsBytes(block.query().rows(), block.spec().heads()));
    var arguments = Arguments.of(gradient, addsQuery, addsKeys, tables, statistics);
    return on -> kernels.differentiate(on, arguments);
  }

  private static Launch clearing(Matrix matrix) {
    long address = row(matrix, 0);
    long bytes = (long) matrix.rows() * matrix.stride() * matrix.dtype().bytes();
    return on -> {
      if (bytes > 0) {
        on.fill(address, (byte) 0, bytes);
      }
    };
  }

  private Launch backward(
      AttentionGradientBlock gradient,
      AttentionProblem problem,
      boolean addsQuery,
      boolean addsKeys,
      Scratch scratch) {
    var block = gradient.block();
    var seeing = Seeing.of(block);
    var plan = cudnn().backward(problem, gradient.deterministic());
    int heads = block.spec().heads();
    long rowNumbers = (long) seeing.count * heads * block.spec().headSize();
    long keyNumbers = (long) block.key().rows() * block.key().columns();
    long statsBytes = Scratch.aligned((long) seeing.count * heads * Float.BYTES);
    long rowBytes = Scratch.aligned(rowNumbers * Short.BYTES);
    long keyBytes = Scratch.aligned(keyNumbers * Short.BYTES);
    long stats = scratch.take(statsBytes + rowBytes + 2 * keyBytes + plan.workspaceBytes());
    long ofQuery = stats + statsBytes;
    long ofKey = ofQuery + rowBytes;
    long ofValue = ofKey + keyBytes;
    long workspace = ofValue + keyBytes;
    long query = row(block.query(), seeing.first);
    long key = row(block.key(), 0);
    long value = row(block.value(), 0);
    long output = row(block.result().output(), seeing.first);
    long lse = row(block.result().lse(), seeing.first);
    long outputGradient = row(gradient.outputGradient(), seeing.first);
    long queryGradient = row(gradient.queryGradient(), seeing.first);
    long keyGradient = row(gradient.keyGradient(), 0);
    long valueGradient = row(gradient.valueGradient(), 0);
    var type = Arguments.type(block.spec().dtype());
    return on -> {
      kernels.statistics(on, lse, stats, seeing.count, heads);
      plan.run(
          on, workspace, query, key, value, output, outputGradient, stats, ofQuery, ofKey, ofValue);
      kernels.add(on, type, ofQuery, queryGradient, rowNumbers, addsQuery);
      kernels.add(on, type, ofKey, keyGradient, keyNumbers, addsKeys);
      kernels.add(on, type, ofValue, valueGradient, keyNumbers, addsKeys);
    };
  }

  public Launch prepare(AttentionMerge merge) {
    var arguments = Arguments.of(merge);
    return on -> kernels.merge(on, arguments);
  }

  /// Returns the problem of the rows that see any key; empty if cuDNN does not have its type. A
  /// mask that hides nothing is left out, so that blocks of one size share a plan.
  static Optional<AttentionProblem> problem(AttentionBlock block, Seeing seeing) {
    var spec = block.spec();
    int keys = block.key().rows();
    long shift = block.queryPosition() - block.keyPosition() + seeing.first;
    boolean masked = spec.isCausal() && (shift < keys - 1 || spec.window() > 0);
    if (spec.dtype() != DType.BF16 && spec.dtype() != DType.FP16) {
      return Optional.empty();
    }
    return Optional.of(
        new AttentionProblem(
            spec.dtype() == DType.BF16 ? AttentionProblem.Type.BF16 : AttentionProblem.Type.FP16,
            spec.heads(),
            spec.kvHeads(),
            spec.headSize(),
            seeing.count,
            keys,
            masked,
            Math.toIntExact(masked ? shift : 0),
            masked ? spec.window() : 0,
            spec.scale()));
  }

  private Prepared byCudnn(
      AttentionBlock block, Seeing seeing, AttentionProblem problem, Scratch scratch) {
    AttentionPlan plan = cudnn().forward(problem);
    var result = block.result();
    int heads = problem.heads();
    int headSize = problem.headSize();
    // A result in cuDNN's type needs no scratch memory for the output.
    boolean direct = result.output().dtype() == block.spec().dtype();
    if (direct && (block.continued() || seeing.count < block.query().rows())) {
      throw new IllegalArgumentException(
          "a partial result must be in fp32 but is in " + result.output().dtype());
    }
    long outputBytes =
        direct ? 0 : Scratch.aligned((long) seeing.count * heads * headSize * Short.BYTES);
    long statsBytes = Scratch.aligned((long) seeing.count * heads * Float.BYTES);
    long base = scratch.take(outputBytes + statsBytes + plan.workspaceBytes());
    long output = direct ? row(result.output(), 0) : base;
    long stats = base + outputBytes;
    long workspace = stats + statsBytes;
    long query = row(block.query(), seeing.first);
    long key = row(block.key(), 0);
    long value = row(block.value(), 0);
    // A continued result keeps the rows that see no key; one that begins needs them all.
    int kept = block.continued() ? seeing.first : 0;
    int rows = block.continued() ? seeing.count : block.query().rows();
    long to = direct ? 0 : row(result.output(), kept);
    long lse = row(result.lse(), kept);
    var computed =
        new AttentionKernels.Computed(
            Arguments.type(block.spec().dtype()), output, stats, seeing.count);
    return new Prepared(
        Optional.of(" by cuDNN"),
        on -> {
          plan.run(on, workspace, query, key, value, output, stats);
          kernels.fold(
              on, computed, seeing.first - kept, rows, heads, headSize, to, lse, block.continued());
        });
  }

  private Cudnn cudnn() {
    if (cudnn == null) {
      throw new IllegalStateException(missing);
    }
    return cudnn;
  }

  private static long row(Matrix matrix, int row) {
    return matrix.segment().address() + (long) row * matrix.stride() * matrix.dtype().bytes();
  }

  @Override
  public void close() {
    var parts = new ArrayDeque<AutoCloseable>();
    if (cudnn != null) {
      parts.add(cudnn);
    }
    parts.add(kernels);
    Closing.all(parts::poll);
  }
}
