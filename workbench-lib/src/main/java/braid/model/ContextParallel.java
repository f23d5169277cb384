package braid.model;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.SequencedMap;

/// The tuning of attention over a divided sequence: how ranks exchange keys and values, or heads,
/// and how that is overlapped with attention. It never changes the result.
///
/// @param ulyssesRanks ranks of [Method#TWO_LEVEL] that exchange heads; 0 for the other methods
/// @param neighborsOnly true if the ranks of [Method#RING] forward keys and values from neighbor to
///   neighbor; false if each reads them from their owner
/// @param splits number of chunks of each rank's keys and values, or of its heads
/// @param streams number of streams that the chunks' attention uses in turn
/// @param workers compute units per rank that communicate; 0 for copy engines
/// @param replayed true to record an iteration once and replay it, instead of enqueuing its steps
///   each time
public record ContextParallel(
    Method method,
    int ulyssesRanks,
    boolean neighborsOnly,
    int splits,
    int streams,
    Transport transport,
    int workers,
    boolean replayed)
    implements Tuning {
  /// Default chunks of each rank's keys and values.
  public static final int DEFAULT_SPLITS = 1;

  /// Default streams for attention.
  public static final int DEFAULT_STREAMS = 1;

  /// How ranks exchange keys and values, or heads.
  public enum Method {
    /// Rank by rank: each rank reads one other rank's keys and values at a time while it computes
    /// with those read before. It needs memory for one chunk more than it has streams, not for the
    /// sequence.
    RING,
    /// All ranks at once: each rank gathers the keys and values of the sequence in chunks, and
    /// computes with each chunk as it arrives.
    ALL_GATHER_KV,
    /// All-to-all over heads: each rank gathers the query, key and value of its share of the heads
    /// for the whole sequence, computes their attention, and returns the output to the ranks that
    /// hold the tokens. The key and value heads must be a multiple of the ranks.
    ULYSSES,
    /// [#ULYSSES] among groups of consecutive ranks, and [#RING] across the groups.
    TWO_LEVEL,
    /// First all communication, then all computation.
    UNFUSED;

    /// Returns whether each rank gathers the keys and values of all ranks, as libraries do.
    public boolean gathers() {
      return this == ALL_GATHER_KV || this == UNFUSED;
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  public ContextParallel {
    if (splits < 1) {
      throw new BraidException(
          "splits must be 1 or more but was %d; try %d splits".formatted(splits, DEFAULT_SPLITS));
    }
    if (method == Method.TWO_LEVEL ? ulyssesRanks < 2 : ulyssesRanks != 0) {
      throw new BraidException(
          method == Method.TWO_LEVEL
              ? "ulyssesRanks must be 2 or more but were %d; try twoLevel(2), or ring()"
                  .formatted(ulyssesRanks)
              : "only two-level has ulyssesRanks but %s was given %d; try twoLevel(%2$d)"
                  .formatted(method, ulyssesRanks));
    }
    if (neighborsOnly && method != Method.RING) {
      throw new BraidException(
          "only ring exchanges from neighbor to neighbor but the method was %s; try ring().neighborToNeighbor()"
              .formatted(method));
    }
    Overlap.within("streams", streams, 1, Overlap.MAX_STREAMS, 2);
    if (method == Method.UNFUSED && (splits != 1 || streams != 1)) {
      throw new BraidException(
          "%s has 1 split and 1 stream but was given %d and %d; take ring() to overlap"
              .formatted(method, splits, streams));
    }
    Overlap.checkWorkers(transport, workers);
  }

  /// Returns [Method#RING] with [#DEFAULT_SPLITS].
  public static ContextParallel ring() {
    return of(Method.RING);
  }

  /// Returns [Method#ALL_GATHER_KV] with [#DEFAULT_SPLITS].
  public static ContextParallel allGatherKv() {
    return of(Method.ALL_GATHER_KV);
  }

  /// Returns [Method#ULYSSES] with [#DEFAULT_SPLITS].
  public static ContextParallel ulysses() {
    return of(Method.ULYSSES);
  }

  /// Returns [Method#TWO_LEVEL] with [#DEFAULT_SPLITS].
  ///
  /// @param ulyssesRanks number of consecutive ranks that exchange heads
  public static ContextParallel twoLevel(int ulyssesRanks) {
    return of(Method.TWO_LEVEL, ulyssesRanks);
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

  /// Returns [Method#UNFUSED].
  public static ContextParallel unfused() {
    return of(Method.UNFUSED);
  }

  private static ContextParallel of(Method method) {
    return of(method, 0);
  }

  private static ContextParallel of(Method method, int ulyssesRanks) {
    return new ContextParallel(
        method,
        ulyssesRanks,
        false,
        DEFAULT_SPLITS,
        DEFAULT_STREAMS,
        Overlap.DEFAULT_TRANSPORT,
        0,
        false);
  }

  /// Lets each rank of [Method#RING] exchange with its two neighbors only: keys and values are
  /// forwarded from neighbor to neighbor, and so are the sums of their gradients. For hosts whose
  /// links between neighbors are the fast ones; elsewhere reading from the owner moves less data.
  public ContextParallel neighborToNeighbor() {
    return new ContextParallel(
        method, ulyssesRanks, true, splits, streams, transport, workers, replayed);
  }

  /// Sets the number of chunks of each rank's keys and values, or of the heads that it computes:
  /// more of them let attention begin earlier and need less memory in a ring, but each costs
  /// latency.
  public ContextParallel splits(int count) {
    return new ContextParallel(
        method, ulyssesRanks, neighborsOnly, count, streams, transport, workers, replayed);
  }

  /// Sets the number of streams that the chunks' attention uses in turn. Chunks of keys have a
  /// partial result per stream; they are merged at the end.
  @Override
  public ContextParallel streams(int count) {
    return new ContextParallel(
        method, ulyssesRanks, neighborsOnly, splits, count, transport, workers, replayed);
  }

  /// Sets what copies between ranks; [Transport#WORKERS] with [Overlap#DEFAULT_WORKERS].
  @Override
  public ContextParallel over(Transport other) {
    int count = other == Transport.WORKERS ? Overlap.DEFAULT_WORKERS : 0;
    return new ContextParallel(
        method, ulyssesRanks, neighborsOnly, splits, streams, other, count, replayed);
  }

  /// Sets the number of compute units per rank that communicate, after `over(WORKERS)`.
  @Override
  public ContextParallel workers(int count) {
    return new ContextParallel(
        method, ulyssesRanks, neighborsOnly, splits, streams, transport, count, replayed);
  }

  /// Records an iteration once and replays it.
  @Override
  public ContextParallel replay() {
    return new ContextParallel(
        method, ulyssesRanks, neighborsOnly, splits, streams, transport, workers, true);
  }

  /// Returns the number of ranks that divide the heads among each other; 1 if all ranks compute all
  /// heads.
  public int headRanks(int ranks) {
    return switch (method) {
      case RING, ALL_GATHER_KV, UNFUSED -> 1;
      case ULYSSES -> ranks;
      case TWO_LEVEL -> ulyssesRanks;
    };
  }

  /// Returns the largest number of splits of which none is empty: of the heads that a rank
  /// computes, or of its keys, where each run of consecutive ones is split.
  public int mostSplits(AttentionSpec spec, int ranks) {
    return Math.max(
        1,
        switch (method) {
          case RING, ALL_GATHER_KV, UNFUSED ->
              switch (spec.layout()) {
                case CONTIGUOUS, STRIPED -> spec.keys() / ranks;
                case ZIGZAG -> spec.keys() / (2 * ranks);
                case PER_SEQUENCE, BY_WORK ->
                    SharedSequences.of(spec, ranks).longestPart(spec.packing().keys(), ranks);
                case WHOLE_SEQUENCES -> 1;
              };
          case ULYSSES, TWO_LEVEL -> spec.kvHeads() / headRanks(ranks);
        });
  }

  /// Checks that the heads of a problem can be divided among the ranks, and among the splits.
  ///
  /// @throws BraidException that names the nearest method or number
  public void check(AttentionSpec spec, int ranks) {
    if (transport.multiplies()) {
      throw new BraidException(
          "attention does not exist over %s, which exchanges in multiplications only; take over(NCCL_KERNELS)"
              .formatted(transport));
    }
    if (transport.isLibrary() && !method.gathers()) {
      throw new BraidException(
          "%s does not exist over %s: a library runs whole collectives; take allGatherKv(), or over(COPY_ENGINE)"
              .formatted(method, transport));
    }
    int sharing = headRanks(ranks);
    if (sharing == 1) {
      return;
    }
    if (spec.layout() == TokenLayout.STRIPED && ranks > 1) {
      throw new BraidException(
          "layout striped has the tokens of %d ranks in turns, which %s would copy row by row; take layout(ZIGZAG), or ring()"
              .formatted(sharing, method));
    }
    int possible = greatestDivisor(spec.kvHeads(), ranks);
    var instead =
        (possible > 1 ? "twoLevel(%d) or ring()".formatted(possible) : "ring()")
            + " for %d ranks".formatted(ranks);
    if (ranks % sharing != 0) {
      throw new BraidException(
          "%s exchanges heads among %d ranks, which must divide the %d ranks; try %s"
              .formatted(method, sharing, ranks, instead));
    }
    if (spec.kvHeads() % sharing != 0) {
      throw new BraidException(
          "%s divides heads among %d ranks, so heads and kvHeads must be multiples of %2$d but were %d and %d; try %s"
              .formatted(method, sharing, spec.heads(), spec.kvHeads(), instead));
    }
    int each = spec.kvHeads() / sharing;
    if (each % splits != 0) {
      throw new BraidException(
          "splits of %s must divide the %d kvHeads of each rank but were %d; try splits(%d)"
              .formatted(method, each, splits, greatestDivisor(each, splits)));
    }
    if (streams > splits) {
      throw new BraidException(
          "%s computes each split on one stream, so streams must be at most %d splits but were %d; try streams(%2$d)"
              .formatted(method, splits, streams));
    }
  }

  /// Checks the tuning of gradients, which return to their owners by copies.
  ///
  /// @throws BraidException that names the nearest transport
  public void checkGradient(AttentionSpec spec, int ranks) {
    if (transport.isLibrary()) {
      throw new BraidException(
          "gradients of attention are not exchanged over %s, which adds parts of all ranks alike; take over(COPY_ENGINE)"
              .formatted(transport));
    }
    check(spec, ranks);
  }

  private static int greatestDivisor(int one, int other) {
    return other == 0 ? one : greatestDivisor(other, one % other);
  }

  /// Returns this tuning as columns of a table; defaults have none, except the method and splits.
  @Override
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", method.toString());
    if (ulyssesRanks > 0) {
      columns.put("ulysses ranks", Integer.toString(ulyssesRanks));
    }
    if (neighborsOnly) {
      columns.put("exchange", "neighbor to neighbor");
    }
    columns.put("splits", Integer.toString(splits));
    if (streams != DEFAULT_STREAMS) {
      columns.put("streams", Integer.toString(streams));
    }
    if (transport != Overlap.DEFAULT_TRANSPORT) {
      columns.put("transport", transport.toString());
    }
    if (workers > 0) {
      columns.put("workers", Integer.toString(workers));
    }
    if (replayed) {
      columns.put("replayed", "true");
    }
    return columns;
  }

  @Override
  public String toString() {
    var words = new ArrayList<String>();
    words.add(
        method == Method.TWO_LEVEL
            ? "%s with %d ranks per all-to-all".formatted(method, ulyssesRanks)
            : method.toString());
    if (method != Method.UNFUSED) {
      words.add(Overlap.counted(splits, "split"));
    }
    if (neighborsOnly) {
      words.add("neighbor to neighbor");
    }
    if (streams != DEFAULT_STREAMS) {
      words.add(Overlap.counted(streams, "stream"));
    }
    if (transport != Overlap.DEFAULT_TRANSPORT) {
      words.add("over " + transport);
    }
    if (workers > 0) {
      words.add(Overlap.counted(workers, "worker"));
    }
    if (replayed) {
      words.add("replayed");
    }
    return String.join(", ", words);
  }
}
