package braid;

import java.util.LinkedHashMap;
import java.util.SequencedMap;

/// The tuning: how the communication is laid beside the GEMM. It never changes the result.
///
/// `splits` is how many pieces the communication is cut into: of every rank's shard
/// ([Method#PIPELINED]) or of each peer's ([Method#DIRECT]). `streams` is how many streams the
/// pieces' GEMMs take turns on.
public record Overlap(Method method, int splits, int streams, Transport transport) {
  /// Pieces of a pipelined collective where nothing is said.
  public static final int DEFAULT_SPLITS = 4;

  /// Pieces of a peer's shard in a direct exchange where nothing is said: a peer is a piece.
  public static final int DEFAULT_DIRECT_SPLITS = 1;

  /// Streams for GEMMs where nothing is said.
  public static final int DEFAULT_STREAMS = 1;

  /// More than any machine has use for; a larger count is taken for a slip.
  public static final int MAX_STREAMS = 16;

  public static final Transport DEFAULT_TRANSPORT = Transport.COPY_ENGINE;

  public Overlap {
    if (splits < 1) {
      throw new BraidException(
          "splits must be 1 or more but was %d; try splits(%d)".formatted(splits, DEFAULT_SPLITS));
    }
    if (streams < 1 || streams > MAX_STREAMS) {
      throw new BraidException(
          "streams must be 1..%d but was %d; try streams(2)".formatted(MAX_STREAMS, streams));
    }
    if (method == Method.UNFUSED && (splits != 1 || streams != 1)) {
      throw new BraidException(
          "unfused has 1 split and 1 stream but was given %d and %d; take splits(%d) to overlap"
              .formatted(splits, streams, Math.max(2, splits)));
    }
  }

  /// A pipelined collective in that many chunks.
  public static Overlap splits(int splits) {
    return new Overlap(Method.PIPELINED, splits, DEFAULT_STREAMS, DEFAULT_TRANSPORT);
  }

  /// What is done where nothing is said.
  public static Overlap defaults() {
    return splits(DEFAULT_SPLITS);
  }

  /// Each rank reads its peers' shards whole.
  public static Overlap direct() {
    return direct(DEFAULT_DIRECT_SPLITS);
  }

  /// Each rank reads each peer's shard in that many pieces.
  public static Overlap direct(int splits) {
    return new Overlap(Method.DIRECT, splits, DEFAULT_STREAMS, DEFAULT_TRANSPORT);
  }

  /// No overlap: the reference.
  public static Overlap unfused() {
    return new Overlap(Method.UNFUSED, 1, 1, DEFAULT_TRANSPORT);
  }

  public Overlap streams(int count) {
    return new Overlap(method, splits, count, transport);
  }

  public Overlap over(Transport other) {
    return new Overlap(method, splits, streams, other);
  }

  /// This tuning as columns of a table.
  public SequencedMap<String, String> columns() {
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", method.toString());
    columns.put("splits", Integer.toString(splits));
    columns.put("streams", Integer.toString(streams));
    columns.put("transport", transport.toString());
    return columns;
  }

  @Override
  public String toString() {
    return method == Method.UNFUSED
        ? "unfused over " + transport
        : "%s splits=%d streams=%d over %s".formatted(method, splits, streams, transport);
  }
}
