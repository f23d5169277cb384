package braid.model;

import braid.model.GemmSpec.Pattern;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/// The tuning: how the communication is overlapped with the GEMM. It never changes the result.
///
/// @param groupRanks number of consecutive ranks of a group of [Method#TWO_LEVEL]; 0 for those of a
///   host, and for the other methods
/// @param splits number of chunks: of every rank's part ([Method#PIPELINED]), or of the data
///   between two ranks ([Method#DIRECT], [Method#RING], [Method#DOUBLING], [Method#TWO_LEVEL])
/// @param boundaries rows of the largest part at which to split, from 0 to its end; empty to split
///   evenly
/// @param streams number of streams that the chunks' GEMMs use in turn
/// @param workers compute units per rank that communicate; 0 for copy engines, one kernel and most
///   libraries
/// @param replayed true to record an iteration once and replay it (as a graph, if the backend has
///   graphs), instead of enqueuing its steps each time
/// @param symmetricOutput true to put the output into symmetric memory, where peers can write it
public record Overlap(
    Method method,
    int groupRanks,
    int splits,
    List<Integer> boundaries,
    int streams,
    ChunkOrder order,
    Transport transport,
    int workers,
    Priority priority,
    boolean replayed,
    boolean symmetricOutput)
    implements Tuning {
  /// Default chunks of a pipelined collective.
  public static final int DEFAULT_SPLITS = 4;

  /// Default chunks between two ranks in a direct exchange.
  public static final int DEFAULT_DIRECT_SPLITS = 1;

  /// Default chunks between two ranks in a ring.
  public static final int DEFAULT_RING_SPLITS = 1;

  /// Default chunks of each rank's part in an exchange whose rows double.
  public static final int DEFAULT_DOUBLING_SPLITS = 1;

  /// Default chunks of each rank's part in two levels.
  public static final int DEFAULT_TWO_LEVEL_SPLITS = 1;

  /// Default streams for GEMMs.
  public static final int DEFAULT_STREAMS = 1;

  /// More than any machine can use; a larger count is taken for a mistake.
  public static final int MAX_STREAMS = 16;

  public static final ChunkOrder DEFAULT_ORDER = ChunkOrder.NEXT_FIRST;

  public static final Transport DEFAULT_TRANSPORT = Transport.COPY_ENGINE;

  /// Most streams over [Transport#ONE_KERNEL]: each may wait on half of the compute units, and a
  /// multiplication that a peer waits for needs the others.
  public static final int MAX_ONE_KERNEL_STREAMS = 2;

  /// Default compute units that communicate, if copy engines do not.
  public static final int DEFAULT_WORKERS = 1;

  /// More than any machine can use; a larger count is taken for a mistake.
  public static final int MAX_WORKERS = 128;

  public static final Priority DEFAULT_PRIORITY = Priority.COMMUNICATION;

  public static final boolean DEFAULT_REPLAYED = false;

  public static final boolean DEFAULT_SYMMETRIC_OUTPUT = false;

  public Overlap {
    boundaries = List.copyOf(boundaries);
    if (splits < 1) {
      throw new BraidException(
          "splits must be 1 or more but was %d; try %d splits".formatted(splits, DEFAULT_SPLITS));
    }
    if (method == Method.TWO_LEVEL ? groupRanks < 0 || groupRanks == 1 : groupRanks != 0) {
      throw new BraidException(
          method == Method.TWO_LEVEL
              ? "groupRanks must be 2 or more but were %d; try twoLevel(2), or direct()"
                  .formatted(groupRanks)
              : "only two-level has groupRanks but %s was given %d; try twoLevel(%2$d)"
                  .formatted(method, groupRanks));
    }
    within("streams", streams, 1, MAX_STREAMS, 2);
    boolean whole = method == Method.UNFUSED || method == Method.BULK;
    if (whole && (splits != 1 || streams != 1)) {
      throw new BraidException(
          "%s has 1 split and 1 stream but was given %d and %d; take pipelined(%d) to overlap"
              .formatted(method, splits, streams, Math.max(2, splits)));
    }
    checkWorkers(transport, workers);
    if (transport == Transport.ONE_KERNEL && streams > MAX_ONE_KERNEL_STREAMS) {
      throw new BraidException(
          "streams over one_kernel must be 1..%d, since kernels that wait for peers occupy compute units, but were %d; try streams(%1$d)"
              .formatted(MAX_ONE_KERNEL_STREAMS, streams));
    }
    checkBoundaries(boundaries, splits);
  }

  /// Checks the number of workers of a transport.
  static void checkWorkers(Transport transport, int workers) {
    switch (transport) {
      case COPY_ENGINE -> {
        if (workers != 0) {
          throw new BraidException(
              "workers must be 0 over copy_engine but were %d; call over(WORKERS) first"
                  .formatted(workers));
        }
      }
      case WORKERS -> within("workers", workers, 1, MAX_WORKERS, DEFAULT_WORKERS);
      case CUBLASMP -> within("workers", workers, 0, MAX_WORKERS, 0);
      case ONE_KERNEL, NCCL_KERNELS, NCCL_COPY_ENGINE, NCCL_SYMMETRIC, NVSHMEM_PUTS -> {
        if (workers != 0) {
          throw new BraidException(
              "workers must be 0 over %s, which takes as many as its bytes need, but were %d; leave workers(...) out"
                  .formatted(transport, workers));
        }
      }
    }
  }

  private static void checkBoundaries(List<Integer> boundaries, int splits) {
    if (boundaries.isEmpty()) {
      return;
    }
    if (boundaries.size() != splits + 1) {
      throw new BraidException(
          "%d chunks need %d boundaries but were given %s"
              .formatted(splits, splits + 1, boundaries));
    }
    if (boundaries.getFirst() != 0) {
      throw new BraidException(
          "boundaries must begin with 0 but were %s: rows 0..%d belong to no chunk"
              .formatted(boundaries, boundaries.getFirst() - 1));
    }
    for (int chunk = 0; chunk < splits; chunk++) {
      int start = boundaries.get(chunk);
      int end = boundaries.get(chunk + 1);
      if (end <= start) {
        throw new BraidException(
            "boundaries must rise but were %s: chunk %d would end at %d and begin at %d, over the"
                    .formatted(boundaries, chunk, end, start)
                + " one before it; give each row to one chunk");
      }
    }
  }

  static void within(String name, int value, int least, int most, int suggested) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s(%d)"
              .formatted(name, least, most, value, name, suggested));
    }
  }

  /// A tuning under construction, so that a setting is changed by its name.
  private static final class Draft {
    Method method = Method.PIPELINED;
    int groupRanks;
    int splits = DEFAULT_SPLITS;
    List<Integer> boundaries = List.of();
    int streams = DEFAULT_STREAMS;
    ChunkOrder order = DEFAULT_ORDER;
    Transport transport = DEFAULT_TRANSPORT;
    int workers;
    Priority priority = DEFAULT_PRIORITY;
    boolean replayed = DEFAULT_REPLAYED;
    boolean symmetricOutput = DEFAULT_SYMMETRIC_OUTPUT;

    Overlap done() {
      return new Overlap(
          method,
          groupRanks,
          splits,
          boundaries,
          streams,
          order,
          transport,
          workers,
          priority,
          replayed,
          symmetricOutput);
    }
  }

  /// Returns a method in that number of chunks; in one if it has no chunks.
  public static Overlap of(Method method, int splits) {
    var draft = new Draft();
    draft.method = method;
    draft.splits = method == Method.BULK || method == Method.UNFUSED ? 1 : splits;
    return draft.done();
  }

  private Overlap with(Consumer<Draft> change) {
    var draft = new Draft();
    draft.method = method;
    draft.groupRanks = groupRanks;
    draft.splits = splits;
    draft.boundaries = boundaries;
    draft.streams = streams;
    draft.order = order;
    draft.transport = transport;
    draft.workers = workers;
    draft.priority = priority;
    draft.replayed = replayed;
    draft.symmetricOutput = symmetricOutput;
    change.accept(draft);
    return draft.done();
  }

  /// Returns a pipelined collective in that number of chunks.
  public static Overlap pipelined(int splits) {
    return of(Method.PIPELINED, splits);
  }

  /// Returns the default tuning.
  public static Overlap defaults() {
    return pipelined(DEFAULT_SPLITS);
  }

  /// Returns a direct exchange with each peer in order.
  public static Overlap direct() {
    return direct(DEFAULT_DIRECT_SPLITS);
  }

  /// Returns a direct exchange with each peer in order, in that number of chunks each.
  public static Overlap direct(int splits) {
    return of(Method.DIRECT, splits);
  }

  /// Returns a ring.
  public static Overlap ring() {
    return ring(DEFAULT_RING_SPLITS);
  }

  /// Returns a ring in which each rank's part travels in that number of chunks.
  public static Overlap ring(int splits) {
    return of(Method.RING, splits);
  }

  /// Returns rounds in which the rows that each rank has double.
  public static Overlap doubling() {
    return doubling(DEFAULT_DOUBLING_SPLITS);
  }

  /// Returns rounds in which the rows that each rank has double; each rank's part travels in that
  /// number of chunks.
  public static Overlap doubling(int splits) {
    return of(Method.DOUBLING, splits);
  }

  /// Returns an exchange in two levels: within the hosts of the ranks, and between them. Only a
  /// pipeline or a tuner, which have a group, know the hosts.
  public static Overlap twoLevel() {
    return of(Method.TWO_LEVEL, DEFAULT_TWO_LEVEL_SPLITS);
  }

  /// Returns an exchange in two levels.
  ///
  /// @param groupRanks number of consecutive ranks of a group, which divides the number of ranks
  public static Overlap twoLevel(int groupRanks) {
    return twoLevel(groupRanks, DEFAULT_TWO_LEVEL_SPLITS);
  }

  /// Returns an exchange in two levels; each rank's part travels in that number of chunks.
  ///
  /// @param groupRanks number of consecutive ranks of a group, which divides the number of ranks
  public static Overlap twoLevel(int groupRanks, int splits) {
    return of(Method.TWO_LEVEL, splits).groupRanks(groupRanks);
  }

  /// Returns one collective of other data beside one GEMM.
  public static Overlap bulk() {
    return of(Method.BULK, 1);
  }

  /// Leaves the choice to the workbench, which decides by measurement once and keeps the decision.
  public static Auto auto() {
    return new Auto(Auto.DEFAULT_BUDGET);
  }

  /// Leaves the choice to the workbench.
  ///
  /// @param budget time for measuring, if nothing is decided
  public static Auto auto(Duration budget) {
    return new Auto(budget);
  }

  /// Returns no overlap: the reference.
  public static Overlap unfused() {
    return of(Method.UNFUSED, 1);
  }

  /// Splits at these rows of the largest part, from 0 to its end, instead of evenly. The last chunk
  /// of a smaller part is shorter.
  public Overlap boundaries(int... rows) {
    var cuts = Arrays.stream(rows).boxed().toList();
    if (cuts.size() < 2) {
      throw new BraidException(
          "boundaries must be 2 or more rows but were %s; give 0, the cuts and the number of rows"
              .formatted(cuts));
    }
    return with(
        draft -> {
          draft.splits = cuts.size() - 1;
          draft.boundaries = cuts;
        });
  }

  /// Sets the number of streams that the chunks' GEMMs use in turn.
  @Override
  public Overlap streams(int count) {
    return with(draft -> draft.streams = count);
  }

  /// Sets the number of consecutive ranks of a group of [Method#TWO_LEVEL].
  public Overlap groupRanks(int count) {
    return with(draft -> draft.groupRanks = count);
  }

  /// Returns the number of ranks of a group, of that number of ranks in all; all of them if it is
  /// open.
  public int groupSize(int ranks) {
    return groupRanks == 0 ? ranks : groupRanks;
  }

  /// Sets the order in which a rank exchanges data with its peers.
  public Overlap order(ChunkOrder other) {
    return with(draft -> draft.order = other);
  }

  /// Sets the transport; [#workers] is [#DEFAULT_WORKERS] by default.
  @Override
  public Overlap over(Transport other) {
    return with(
        draft -> {
          draft.transport = other;
          draft.workers = other == Transport.WORKERS ? Math.max(workers, DEFAULT_WORKERS) : 0;
        });
  }

  /// Sets the number of compute units per rank that communicate (SMs, on a GPU); only over
  /// [Transport#WORKERS], and over [Transport#CUBLASMP], which chooses itself by default.
  @Override
  public Overlap workers(int count) {
    return with(draft -> draft.workers = count);
  }

  /// Sets the streams that have priority.
  public Overlap priority(Priority other) {
    return with(draft -> draft.priority = other);
  }

  /// Records an iteration once and replays it.
  @Override
  public Overlap replay() {
    return with(draft -> draft.replayed = true);
  }

  /// Puts the output into symmetric memory, where peers can write it. If each rank finishes its own
  /// output (bias, GELU, accumulate), peers write a sum beside it instead.
  public Overlap outputInSymmetricMemory() {
    return with(draft -> draft.symmetricOutput = true);
  }

  /// Checks that the tuning exists for a problem, and that each of its options has an effect there.
  ///
  /// @throws BraidException that names the nearest tuning
  public void check(GemmSpec spec, int ranks) {
    var pattern = spec.pattern();
    var reason = method.unsupported(pattern);
    if (!reason.isEmpty()) {
      throw new BraidException("%s does not exist for %s: %s".formatted(method, pattern, reason));
    }
    if (method == Method.TWO_LEVEL) {
      checkGroups(ranks);
    }
    if (transport.isLibrary()) {
      checkLibrary(spec, ranks);
    }
    if (method == Method.RING && order == ChunkOrder.RANK_ORDER) {
      throw new BraidException(
          "the order of a ring must be %s or %s, its two directions, but was %s; leave order(...) out"
              .formatted(ChunkOrder.NEXT_FIRST, ChunkOrder.PREVIOUS_FIRST, order));
    }
    if (transport == Transport.ONE_KERNEL
        && method == Method.DIRECT
        && pattern.reduces()
        && order != DEFAULT_ORDER) {
      throw new BraidException(
          "sums over one_kernel read all peers at once, in no order, but it was %s; leave order(...) out"
              .formatted(order));
    }
    if (method == Method.DOUBLING && order != DEFAULT_ORDER) {
      throw new BraidException(
          "the order of doubling follows from the numbers of the ranks but was %s; leave order(...) out"
              .formatted(order));
    }
    if (symmetricOutput
        && method == Method.UNFUSED
        && pattern == Pattern.GEMM_ALL_REDUCE
        && ranks > 1
        && !spec.finishesSum()) {
      throw new BraidException(
          "the output of an %s %s is in symmetric memory already, where peers write the sums; leave outputInSymmetricMemory() out"
              .formatted(method, pattern));
    }
  }

  /// Checks that groups divide the ranks.
  private void checkGroups(int ranks) {
    if (groupRanks > 0 ? ranks % groupRanks == 0 : ranks == 1) {
      return;
    }
    int near = Math.max(1, groupRanks > 0 ? Math.min(ranks, groupRanks) : ranks / 2);
    while (ranks % near != 0) {
      near--;
    }
    var instead =
        "%sdirect() for %d ranks"
            .formatted(near > 1 ? "twoLevel(%d) or ".formatted(near) : "", ranks);
    throw new BraidException(
        groupRanks > 0
            ? "%s exchanges rows within groups of %d ranks, which must divide the %d ranks; try %s"
                .formatted(method, groupRanks, ranks, instead)
            : "twoLevel() takes the ranks of a host, which only a pipeline or a tuner knows; try %s"
                .formatted(instead));
  }

  /// Checks that the library of the transport has the collectives of the problem, whose calls take
  /// equal parts of contiguous numbers.
  private void checkLibrary(GemmSpec spec, int ranks) {
    var pattern = spec.pattern();
    var reason = transport.unsupported(pattern, method);
    if (!reason.isEmpty()) {
      throw new BraidException(
          "%s of %s does not exist over %s: %s".formatted(method, pattern, transport, reason));
    }
    if (order != DEFAULT_ORDER) {
      throw new BraidException(
          "%s chooses its own order but it was %s; leave order(...) out"
              .formatted(transport, order));
    }
    if (pattern == Pattern.ALL_GATHER_GEMM && spec.has(GemmSpec.Feature.TRANSPOSED_INPUT)) {
      throw new BraidException(
          "%s gathers contiguous rows, so the input must be stored by rows; leave transposedInput() out, or take over(COPY_ENGINE)"
              .formatted(transport));
    }
    if (pattern.beside()) {
      checkEqualParts("elements beside", spec.besideElements(), ranks);
    } else if (pattern != Pattern.GEMM_ALL_REDUCE) {
      checkEqualParts("m", spec.m(), ranks);
    }
    if (transport == Transport.NCCL_SYMMETRIC && splits > 1 && !pattern.beside()) {
      checkRowBytes(spec);
    }
    if (transport.multiplies()) {
      checkWholeOperation(spec, ranks);
    }
    if (symmetricOutput
        && pattern.reduces()
        && transport.memory().isPresent()
        && !spec.finishesSum()) {
      throw new BraidException(
          "the output of %s over %s is in symmetric memory already, where the library writes it; leave outputInSymmetricMemory() out"
              .formatted(pattern, transport));
    }
  }

  /// Checks that a library that multiplies too runs the problem as one call.
  private void checkWholeOperation(GemmSpec spec, int ranks) {
    if (splits != 1 || streams != 1) {
      throw new BraidException(
          "%s runs the whole operation in one call, so splits and streams must be 1 but were %d and %d; take pipelined(1)"
              .formatted(transport, splits, streams));
    }
    if (replayed) {
      throw new BraidException(
          "%s takes no replay(), since no graph is known to record its calls; leave replay() out"
              .formatted(transport));
    }
    if (symmetricOutput) {
      throw new BraidException(
          "%s writes each rank's output itself, so symmetric memory has no effect; leave outputInSymmetricMemory() out"
              .formatted(transport));
    }
    var features = EnumSet.noneOf(GemmSpec.Feature.class);
    features.addAll(spec.features());
    boolean transposed = features.remove(GemmSpec.Feature.TRANSPOSED_WEIGHT);
    if (!features.isEmpty()) {
      throw new BraidException(
          "%s takes a transposed weight and no other option but was given %s; take over(COPY_ENGINE)"
              .formatted(
                  transport,
                  features.stream().map(Object::toString).collect(Collectors.joining(", "))));
    }
    var pattern = spec.pattern();
    if (pattern == Pattern.GEMM_ALL_REDUCE && !transposed) {
      throw new BraidException(
          "the weight of an all-reduce over %s must be transposed; call transposedWeight(), or take over(COPY_ENGINE)"
              .formatted(transport));
    }
    var dtype = spec.dtype();
    if (!transport.multiplies(dtype)
        || spec.weightDtype() != dtype
        || spec.outputDtype() != dtype) {
      throw new BraidException(
          "over %s input, weight and output must have one type of fp32, bf16 and fp16 but had %s, %s and %s; take over(COPY_ENGINE)"
              .formatted(transport, dtype, spec.weightDtype(), spec.outputDtype()));
    }
    if (pattern == Pattern.ALL_GATHER_GEMM) {
      checkEqualParts("n", spec.n(), ranks);
    } else {
      checkEqualParts("k", spec.k(), ranks);
    }
  }

  private void checkEqualParts(String name, long count, int ranks) {
    if (count % ranks != 0) {
      throw new BraidException(
          "%s must be a multiple of the %d ranks over %s, which takes equal parts, but was %d; try %d, or over(COPY_ENGINE)"
              .formatted(name, ranks, transport, count, (count + ranks - 1) / ranks * ranks));
    }
  }

  /// Checks that NCCL's symmetric kernels read right numbers from wherever a chunk begins.
  private void checkRowBytes(GemmSpec spec) {
    long rowBytes =
        spec.pattern() == Pattern.ALL_GATHER_GEMM
            ? (long) spec.k() * spec.dtype().bytes()
            : (long) spec.n() * spec.sumDtype().bytes();
    if (rowBytes % Transport.SYMMETRIC_ALIGNMENT_BYTES != 0) {
      throw new BraidException(
          "over %s several chunks need rows of a multiple of %d bytes, since NCCL 2.28 reads wrong numbers from other addresses, but a row has %d; take splits(1), or over(NCCL_KERNELS)"
              .formatted(transport, Transport.SYMMETRIC_ALIGNMENT_BYTES, rowBytes));
    }
  }

  /// Returns this tuning as columns of a table; defaults have none, except the first four.
  @Override
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", method.toString());
    if (groupRanks > 0) {
      columns.put("group ranks", Integer.toString(groupRanks));
    }
    columns.put("splits", Integer.toString(splits));
    columns.put("streams", Integer.toString(streams));
    columns.put("transport", transport.toString());
    columns.putAll(nonDefaults());
    return columns;
  }

  private SequencedMap<String, String> nonDefaults() {
    var columns = new LinkedHashMap<String, String>();
    if (!boundaries.isEmpty()) {
      columns.put(
          "boundaries", boundaries.stream().map(String::valueOf).collect(Collectors.joining("-")));
    }
    if (order != DEFAULT_ORDER) {
      columns.put("order", order.toString());
    }
    if (workers > 0) {
      columns.put("workers", Integer.toString(workers));
    }
    if (priority != DEFAULT_PRIORITY) {
      columns.put("priority", priority.toString());
    }
    if (replayed != DEFAULT_REPLAYED) {
      columns.put("replayed", Boolean.toString(replayed));
    }
    if (symmetricOutput != DEFAULT_SYMMETRIC_OUTPUT) {
      columns.put("output in", symmetricOutput ? "symmetric memory" : "its own memory");
    }
    return columns;
  }

  /// Returns the tuning in words, without defaults: "pipelined, 4 splits, 2 streams".
  @Override
  public String toString() {
    var words = new ArrayList<String>();
    words.add(
        groupRanks > 0
            ? "%s with %d ranks per group".formatted(method, groupRanks)
            : method.toString());
    if (method != Method.UNFUSED && method != Method.BULK) {
      words.add(counted(splits, "split"));
    }
    if (streams != DEFAULT_STREAMS) {
      words.add(counted(streams, "stream"));
    }
    if (transport != DEFAULT_TRANSPORT) {
      words.add("over " + transport);
    }
    nonDefaults()
        .forEach(
            (name, value) ->
                words.add(
                    switch (name) {
                      case "workers" -> counted(workers, "worker");
                      case "replayed" -> name;
                      default -> name + " " + value;
                    }));
    return String.join(", ", words);
  }

  static String counted(int count, String subject) {
    return "%d %s%s".formatted(count, subject, count == 1 ? "" : "s");
  }
}
