package braid.internal.cuda.device;

import braid.internal.rank.AttentionEngine;
import braid.internal.rank.Closing;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Matrix;
import braid.internal.work.Recoding;
import braid.model.BraidException;
import braid.natives.cuda.Gpu;
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
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// Attention on a GPU and its gradients: by cuDNN where it is present and computes the block, else
/// by our own kernels, which add to the fp32 result themselves.
public final class Attender implements AutoCloseable {
  private static final String BY_CUDNN = " by cuDNN";

  private final Gpu gpu;
  private final AttentionKernels kernels;
  private final AttentionEngine engine;
  private final @Nullable CudnnAttention cudnn;
  private final String missing;

  /// A prepared block.
  ///
  /// @param library addition to the names of the block's work; empty for our own kernel
  public record Prepared(Optional<String> library, Launch launch) {}

  Attender(Gpu gpu, AttentionKernels kernels, AttentionEngine engine) {
    this.gpu = gpu;
    this.kernels = kernels;
    this.engine = engine;
    Cudnn found = null;
    var reason = "";
    if (engine != AttentionEngine.OWN) {
      try {
        found = Cudnn.open(gpu);
      } catch (BraidNativeMissing e) {
        reason = String.valueOf(e.getMessage());
      }
    }
    this.cudnn = found == null ? null : new CudnnAttention(gpu, found, kernels);
    this.missing = reason;
  }

  public AttentionKernels kernels() {
    return kernels;
  }

  /// Prepares a block on one stream: chooses the engine and allocates scratch memory. The returned
  /// launch only enqueues. Packed sequences are computed together where the engine can.
  ///
  /// @throws BraidException if cuDNN is required and cannot compute the block
  public Prepared prepare(AttentionBlock block, Scratch scratch) {
    var all = sequences(block, UnaryOperator.identity(), problem -> cudnn().cannot(problem));
    if (all.stream().allMatch(each -> each.problem().isEmpty())) {
      boolean isOne =
          all.size() == 1 && (block.finished().isEmpty() || all.getFirst().block().equals(block));
      var whole = isOne ? all.getFirst().block() : block;
      var tables = isOne ? Arguments.Tables.NONE : tables(block, scratch);
      var arguments = Arguments.of(whole, tables);
      return new Prepared(Optional.empty(), stream -> kernels.attend(stream, arguments));
    }
    if (all.size() > 1 && block.finished().isPresent()) {
      return inTwoSteps(block, scratch);
    }
    var launches = new ArrayList<Launch>();
    var output = block.result().output();
    // Sequences share no rows, so they write a result in 16 bits one after another.
    boolean narrow = CudnnAttention.isNarrow(output);
    if (narrow && all.stream().mapToInt(Sequences::seeingRows).sum() < block.query().rows()) {
      launches.add(lane -> CudnnAttention.clear(lane, output));
    }
    // Packed sequences come first, and begin all rows of the block.
    boolean begun = false;
    for (var each : all) {
      boolean continued = block.continued() || begun;
      if (each.problem().isPresent()) {
        launches.add(cudnn().forward(each, block, continued, scratch));
        begun |= each.areSeveral();
      } else if (!continued || each.block().key().rows() > 0) {
        var own = continued && !narrow ? each.block().asContinued() : each.block();
        var arguments = Arguments.of(own, Arguments.Tables.NONE);
        launches.add(queue -> kernels.attend(queue, arguments));
      }
    }
    return new Prepared(
        Optional.of(BY_CUDNN), enqueued -> launches.forEach(each -> each.on(enqueued)));
  }

  /// Adds to the result, and then writes the output of all rows.
  private Prepared inTwoSteps(AttentionBlock block, Scratch scratch) {
    var added = prepare(block.asContinued(), scratch);
    var result = block.result();
    var written =
        prepare(
            new AttentionMerge(
                List.of(result), new AttentionBlock.Part(block.output(), result.lse())));
    return new Prepared(
        added.library(),
        stream -> {
          added.launch().on(stream);
          written.on(stream);
        });
  }

  /// Returns the sequences of a block, each with its engine: packed ones that cuDNN computes
  /// together first.
  ///
  /// @param complete adds to a problem what the block does not know
  /// @param cannot returns why cuDNN cannot solve a problem
  /// @throws BraidException if cuDNN is required and cannot compute a sequence
  private List<Sequences> sequences(
      AttentionBlock block,
      UnaryOperator<AttentionProblem> complete,
      Function<AttentionProblem, Optional<String>> cannot) {
    var together = new ArrayList<Sequences>();
    var alone = new ArrayList<Sequences>();
    for (var found : Sequences.of(block)) {
      var sequences = found.with(complete);
      if (!sequences.areSeveral()) {
        alone.add(Sequences.one(sequences.block(), byCudnn(sequences, cannot)));
      } else if (cudnn != null && cannot.apply(sequences.problem().orElseThrow()).isEmpty()) {
        together.add(sequences);
      } else if (engine == AttentionEngine.AUTO && sequences.haveOneRowEach()) {
        // One launch of our own kernels takes less time than many calls of cuDNN.
        sequences.alone().forEach(one -> alone.add(Sequences.one(one.block(), Optional.empty())));
      } else {
        sequences
            .alone()
            .forEach(
                one -> alone.add(Sequences.one(one.block(), byCudnn(one.with(complete), cannot))));
      }
    }
    together.addAll(alone);
    return together;
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
  /// of keys and rows that have an effect, unlike padding.
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
      // Rows without a position see nothing, at the end of what those before them see.
      int last = 0;
      for (int row = 0; row < rows; row++) {
        boolean has = block.queries().has(row);
        int first = has ? block.firstSeen(row) : last;
        int end = has ? block.endSeen(row) : last;
        last = Math.max(last, end);
        put(pairs.seen, row, first, end);
        pairs.queryTokens.set(ValueLayout.JAVA_BYTE, row, (byte) (first < end ? 1 : 0));
      }
      int first = 0;
      int end = 0;
      for (int key = 0; key < keys; key++) {
        while (first < rows && pairs.seen.getAtIndex(ValueLayout.JAVA_INT, 2L * first + 1) <= key) {
          first++;
        }
        while (end < rows && pairs.seen.getAtIndex(ValueLayout.JAVA_INT, 2L * end) <= key) {
          end++;
        }
        put(pairs.seeing, key, first, end);
        boolean isUnseen = block.spec().isUnseen(block.keys().at(key));
        pairs.tokens.set(ValueLayout.JAVA_BYTE, key, (byte) (isUnseen ? 0 : 1));
      }
      return pairs;
    }

    private static void put(MemorySegment table, int index, int first, int end) {
      table.setAtIndex(ValueLayout.JAVA_INT, 2L * index, first);
      table.setAtIndex(ValueLayout.JAVA_INT, 2L * index + 1, end);
    }
  }

  /// Returns the problem of a sequence if cuDNN computes it; empty if our own kernels do.
  private Optional<AttentionProblem> byCudnn(
      Sequences one, Function<AttentionProblem, Optional<String>> cannot) {
    // Rows without keys have no work for cuDNN.
    if (engine == AttentionEngine.OWN || one.rows().count() == 0) {
      return Optional.empty();
    }
    var problem = one.problem();
    var refusal =
        problem.isEmpty()
            ? Optional.of(
                "cuDNN's attention is in bf16 or fp16 and dtype is " + one.block().spec().dtype())
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
    var all =
        sequences(
                block,
                problem -> Sequences.withGradients(problem, gradient),
                problem -> cudnn().cannotBackward(problem, gradient.deterministic()))
            .stream()
            .filter(each -> each.rows().count() > 0)
            .toList();
    if (all.stream().allMatch(each -> each.problem().isEmpty())) {
      return new Prepared(
          Optional.empty(),
          ownBackward(gradient, gradient.continuesQuery(), gradient.continuesKeys(), scratch));
    }
    var launches = new ArrayList<Launch>();
    var first = all.getFirst();
    var query = gradient.queryGradient();
    boolean queryBegins =
        gradient.continuesQuery() || begins(first, query, first.haveAllRowsOf(block));
    if (!queryBegins) {
      launches.add(stream -> CudnnAttention.clear(stream, query));
    }
    var key = gradient.keyGradient();
    boolean keysBegin = gradient.continuesKeys() || begins(first, key, first.haveAllKeysOf(block));
    if (!keysBegin) {
      launches.add(lane -> CudnnAttention.clear(lane, key));
      launches.add(queue -> CudnnAttention.clear(queue, gradient.valueGradient()));
    }
    boolean addsQuery =
        !CudnnAttention.isNarrow(query) && (gradient.continuesQuery() || !queryBegins);
    boolean addsKeys = !CudnnAttention.isNarrow(key) && (gradient.continuesKeys() || !keysBegin);
    for (var each : all) {
      var gradientBlock = each.areSeveral() ? gradient : gradient.of(each.block());
      launches.add(
          each.problem().isPresent()
              ? cudnn().backward(each, gradientBlock, addsQuery, addsKeys, scratch)
              : ownBackward(gradientBlock, addsQuery, addsKeys, scratch));
      // Sequences share no rows and no keys, so gradients in 16 bits need no sums.
      addsQuery = !CudnnAttention.isNarrow(query);
      addsKeys = !CudnnAttention.isNarrow(key);
    }
    return new Prepared(
        Optional.of(BY_CUDNN), enqueued -> launches.forEach(launch -> launch.on(enqueued)));
  }

  /// Returns whether the first sequences of a block begin a gradient in all of its rows.
  private static boolean begins(Sequences first, Matrix gradient, boolean haveAll) {
    return haveAll || (first.areSeveral() && !CudnnAttention.isNarrow(gradient));
  }

  private Launch ownBackward(
      AttentionGradientBlock gradient, boolean addsQuery, boolean addsKeys, Scratch scratch) {
    var block = gradient.block();
    boolean plain =
        block.spec().packing().isSingle()
            && block.isConsecutive()
            && !block.spec().isUnseen(block.keys().first());
    var tables = plain ? Arguments.Tables.NONE : tables(block, scratch);
    long statistics =
        scratch.take(
            AttentionGradientArguments.statisticsBytes(block.query().rows(), block.spec().heads()));
    var arguments = Arguments.of(gradient, addsQuery, addsKeys, tables, statistics);
    return stream -> kernels.differentiate(stream, arguments);
  }

  public Launch prepare(AttentionMerge merge) {
    var arguments = Arguments.of(merge);
    return stream -> kernels.merge(stream, arguments);
  }

  public Launch prepare(Recoding recoding) {
    var wide = recoding.wide();
    var rounded = recoding.rounded();
    var heads =
        new AttentionKernels.Heads(
            Arguments.type(wide.dtype()),
            wide.segment().address(),
            wide.stride(),
            rounded.segment().address(),
            rounded.stride(),
            wide.rows(),
            recoding.heads(),
            recoding.headSize());
    return stream -> kernels.recode(stream, heads, recoding.rounds());
  }

  private CudnnAttention cudnn() {
    if (cudnn == null) {
      throw new IllegalStateException(missing);
    }
    return cudnn;
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
