package braid.model;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/// The tuning: how the communication is laid beside the GEMM. It never changes the result.
///
/// @param splits how many pieces the communication is cut into: of every rank's part
///   ([Method#PIPELINED]), or of what goes between two ranks ([Method#DIRECT], [Method#RING])
/// @param boundaries where to cut, as rows of the largest part, from 0 to its end; none to cut
///   evenly
/// @param streams how many streams the pieces' GEMMs take turns on
/// @param workers compute units that communicate; 0 where copy engines do
/// @param replayed whether what an iteration lays out is recorded once and replayed (a graph, where
///   the backend has them), instead of being laid out again each time
/// @param symmetricOutput whether the output lies in symmetric memory, so that peers can write
///   there
public record Overlap(
    Method method,
    int splits,
    List<Integer> boundaries,
    int streams,
    ChunkOrder order,
    Transport transport,
    int workers,
    Priority priority,
    boolean replayed,
    boolean symmetricOutput) {
  /// Pieces of a pipelined collective where nothing is said.
  public static final int DEFAULT_SPLITS = 4;

  /// Pieces between two ranks in a direct exchange where nothing is said.
  public static final int DEFAULT_DIRECT_SPLITS = 1;

  /// Pieces between two ranks in a ring where nothing is said.
  public static final int DEFAULT_RING_SPLITS = 1;

  /// Streams for GEMMs where nothing is said.
  public static final int DEFAULT_STREAMS = 1;

  /// More than any machine has use for; a larger count is taken for a slip.
  public static final int MAX_STREAMS = 16;

  public static final ChunkOrder DEFAULT_ORDER = ChunkOrder.NEXT_FIRST;

  public static final Transport DEFAULT_TRANSPORT = Transport.COPY_ENGINE;

  /// Compute units that communicate where nothing is said and copy engines do not.
  public static final int DEFAULT_WORKERS = 1;

  /// More than any machine has use for; a larger count is taken for a slip.
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
    within("streams", streams, 1, MAX_STREAMS, 2);
    boolean whole = method == Method.UNFUSED || method == Method.BULK;
    if (whole && (splits != 1 || streams != 1)) {
      throw new BraidException(
          "%s has 1 split and 1 stream but was given %d and %d; take pipelined(%d) to overlap"
              .formatted(method, splits, streams, Math.max(2, splits)));
    }
    switch (transport) {
      case COPY_ENGINE -> {
        if (workers != 0) {
          throw new BraidException(
              "workers must be 0 over copy_engine but were %d; say over(WORKERS) first"
                  .formatted(workers));
        }
      }
      case WORKERS -> within("workers", workers, 1, MAX_WORKERS, DEFAULT_WORKERS);
    }
    checkBoundaries(boundaries, splits);
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

  private static void within(String name, int value, int least, int most, int usual) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s(%d)"
              .formatted(name, least, most, value, name, usual));
    }
  }

  /// A tuning in the making, so that a setting is changed by its name.
  private static final class Draft {
    Method method = Method.PIPELINED;
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

  private static Overlap of(Method method, int splits) {
    var draft = new Draft();
    draft.method = method;
    draft.splits = splits;
    return draft.done();
  }

  private Overlap with(Consumer<Draft> change) {
    var draft = new Draft();
    draft.method = method;
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

  /// A pipelined collective in that many chunks.
  public static Overlap pipelined(int splits) {
    return of(Method.PIPELINED, splits);
  }

  /// What is done where nothing is said.
  public static Overlap defaults() {
    return pipelined(DEFAULT_SPLITS);
  }

  /// Each rank deals with its peers one after the other.
  public static Overlap direct() {
    return direct(DEFAULT_DIRECT_SPLITS);
  }

  /// Each rank deals with its peers one after the other, with each in that many pieces.
  public static Overlap direct(int splits) {
    return of(Method.DIRECT, splits);
  }

  /// From each rank to the next, round the ring.
  public static Overlap ring() {
    return ring(DEFAULT_RING_SPLITS);
  }

  /// From each rank to the next, round the ring, each rank's part in that many pieces.
  public static Overlap ring(int splits) {
    return of(Method.RING, splits);
  }

  /// One collective of other data beside one GEMM.
  public static Overlap bulk() {
    return of(Method.BULK, 1);
  }

  /// No overlap: the reference.
  public static Overlap unfused() {
    return of(Method.UNFUSED, 1);
  }

  /// Cuts there instead of evenly: at these rows of the largest part, from 0 to its end. Where
  /// parts differ, the last chunk of a smaller one is shorter.
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

  /// How many streams the pieces' GEMMs take turns on.
  public Overlap streams(int count) {
    return with(draft -> draft.streams = count);
  }

  /// In which order a rank deals with the others.
  public Overlap order(ChunkOrder other) {
    return with(draft -> draft.order = other);
  }

  /// Over that transport; workers are [#DEFAULT_WORKERS] until [#workers] says another number.
  public Overlap over(Transport other) {
    return with(
        draft -> {
          draft.transport = other;
          draft.workers = other == Transport.COPY_ENGINE ? 0 : Math.max(workers, DEFAULT_WORKERS);
        });
  }

  /// How many compute units communicate (SMs, on a GPU); only over [Transport#WORKERS].
  public Overlap workers(int count) {
    return with(draft -> draft.workers = count);
  }

  /// Whose streams go first.
  public Overlap priority(Priority other) {
    return with(draft -> draft.priority = other);
  }

  /// Records what an iteration lays out once, and replays it.
  public Overlap replay() {
    return with(draft -> draft.replayed = true);
  }

  /// Puts the output into symmetric memory, where peers can write it. Where each rank finishes its
  /// own output (bias, GELU, accumulate), peers write a sum beside it instead.
  public Overlap outputInSymmetricMemory() {
    return with(draft -> draft.symmetricOutput = true);
  }

  /// This tuning as columns of a table; what is as usual has none, but for the first four.
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", method.toString());
    columns.put("splits", Integer.toString(splits));
    columns.put("streams", Integer.toString(streams));
    columns.put("transport", transport.toString());
    columns.putAll(unusual());
    return columns;
  }

  private SequencedMap<String, String> unusual() {
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

  @Override
  public String toString() {
    var text = new StringBuilder(method.toString());
    if (method != Method.UNFUSED && method != Method.BULK) {
      text.append(" splits=").append(splits).append(" streams=").append(streams);
    }
    text.append(" over ").append(transport);
    unusual().forEach((name, value) -> text.append(' ').append(name).append('=').append(value));
    return text.toString();
  }
}
