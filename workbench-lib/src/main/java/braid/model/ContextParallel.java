package braid.model;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.SequencedMap;

/// The tuning of attention over a divided sequence: how ranks exchange keys and values, and how
/// that is overlapped with attention. It never changes the result.
///
/// @param splits number of chunks of each rank's keys and values
/// @param streams number of streams that the chunks' attention uses in turn
/// @param workers compute units per rank that communicate; 0 for copy engines
/// @param replayed true to record an iteration once and replay it, instead of enqueuing its steps
///   each time
public record ContextParallel(
    Method method, int splits, int streams, Transport transport, int workers, boolean replayed) {
  /// Default chunks of each rank's keys and values.
  public static final int DEFAULT_SPLITS = 1;

  /// Default streams for attention.
  public static final int DEFAULT_STREAMS = 1;

  /// How ranks exchange keys and values.
  public enum Method {
    /// Rank by rank: each rank reads one other rank's keys and values at a time while it computes
    /// with those read before. It needs memory for one chunk more than it has streams, not for the
    /// sequence.
    RING,
    /// All ranks at once: each rank gathers the keys and values of the sequence in chunks, and
    /// computes with each chunk as it arrives.
    ALL_GATHER_KV,
    /// First all communication, then all computation.
    UNFUSED;

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
    within("streams", streams, 1, Overlap.MAX_STREAMS, 2);
    if (method == Method.UNFUSED && (splits != 1 || streams != 1)) {
      throw new BraidException(
          "%s has 1 split and 1 stream but was given %d and %d; take ring() to overlap"
              .formatted(method, splits, streams));
    }
    switch (transport) {
      case COPY_ENGINE -> {
        if (workers != 0) {
          throw new BraidException(
              "workers must be 0 over copy_engine but were %d; call over(WORKERS) first"
                  .formatted(workers));
        }
      }
      case WORKERS -> within("workers", workers, 1, Overlap.MAX_WORKERS, Overlap.DEFAULT_WORKERS);
    }
  }

  private static void within(String name, int value, int least, int most, int suggested) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s(%d)"
              .formatted(name, least, most, value, name, suggested));
    }
  }

  /// Returns [Method#RING] with [#DEFAULT_SPLITS].
  public static ContextParallel ring() {
    return of(Method.RING);
  }

  /// Returns [Method#ALL_GATHER_KV] with [#DEFAULT_SPLITS].
  public static ContextParallel allGatherKv() {
    return of(Method.ALL_GATHER_KV);
  }

  /// Returns [Method#UNFUSED].
  public static ContextParallel unfused() {
    return of(Method.UNFUSED);
  }

  private static ContextParallel of(Method method) {
    return new ContextParallel(
        method, DEFAULT_SPLITS, DEFAULT_STREAMS, Overlap.DEFAULT_TRANSPORT, 0, false);
  }

  /// Sets the number of chunks of each rank's keys and values: more of them let attention begin
  /// earlier and need less memory in a ring, but each costs latency.
  public ContextParallel splits(int count) {
    return new ContextParallel(method, count, streams, transport, workers, replayed);
  }

  /// Sets the number of streams that the chunks' attention uses in turn. Each has its own partial
  /// result; they are merged at the end.
  public ContextParallel streams(int count) {
    return new ContextParallel(method, splits, count, transport, workers, replayed);
  }

  /// Sets what copies between ranks; [Transport#WORKERS] with [Overlap#DEFAULT_WORKERS].
  public ContextParallel over(Transport other) {
    int count = other == Transport.WORKERS ? Overlap.DEFAULT_WORKERS : 0;
    return new ContextParallel(method, splits, streams, other, count, replayed);
  }

  /// Sets the number of compute units per rank that communicate, after `over(WORKERS)`.
  public ContextParallel workers(int count) {
    return new ContextParallel(method, splits, streams, transport, count, replayed);
  }

  /// Records an iteration once and replays it.
  public ContextParallel replay() {
    return new ContextParallel(method, splits, streams, transport, workers, true);
  }

  /// Returns this tuning as columns of a table; defaults have none, except the method and splits.
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", method.toString());
    columns.put("splits", Integer.toString(splits));
    if (streams != DEFAULT_STREAMS) {
      columns.put("streams", Integer.toString(streams));
    }
    if (transport != Overlap.DEFAULT_TRANSPORT) {
      columns.put("transport", transport.toString());
      columns.put("workers", Integer.toString(workers));
    }
    if (replayed) {
      columns.put("replayed", "true");
    }
    return columns;
  }

  @Override
  public String toString() {
    var text = new StringBuilder("%s splits=%d".formatted(method, splits));
    if (streams != DEFAULT_STREAMS) {
      text.append(" streams=").append(streams);
    }
    if (transport != Overlap.DEFAULT_TRANSPORT) {
      text.append(" over=").append(transport).append(" workers=").append(workers);
    }
    return text.append(replayed ? " replayed=true" : "").toString();
  }
}
