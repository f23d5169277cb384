package braid.export;

import braid.model.BraidException;
import braid.model.Collective;
import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;

/// The time of a collective of NCCL, run by one of its algorithms and protocols.
///
/// @param bytes bytes of the larger of a rank's two buffers, as NCCL counts them
/// @param channels channels that NCCL was limited to
public record CollectiveTime(
    Collective collective,
    long bytes,
    int nodes,
    int ranks,
    Algorithm algorithm,
    Protocol protocol,
    int channels,
    double medianNanos,
    MeasuredOn machine) {
  /// Largest number of channels of NCCL.
  public static final int MOST_CHANNELS = 64;

  /// Algorithms of NCCL.
  public enum Algorithm {
    TREE,
    RING,
    COLLNET_DIRECT,
    COLLNET_CHAIN,
    NVLS,
    NVLS_TREE,
    PAT;

    /// Returns the algorithms of a collective; none if the file has no row of it.
    static Set<Algorithm> of(Collective collective) {
      return switch (collective) {
        case ALL_REDUCE -> EnumSet.complementOf(EnumSet.of(PAT));
        case ALL_GATHER, REDUCE_SCATTER -> EnumSet.of(RING, COLLNET_DIRECT, NVLS, PAT);
        case BROADCAST -> EnumSet.of(RING);
        case ALL_TO_ALL, SEND, RECEIVE, BARRIER -> EnumSet.noneOf(Algorithm.class);
      };
    }

    /// Returns the name in the file.
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /// Protocols of NCCL.
  public enum Protocol {
    LL,
    LL128,
    SIMPLE;

    /// Returns the name in the file.
    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  public CollectiveTime {
    var algorithms = Algorithm.of(collective);
    if (!algorithms.contains(algorithm)) {
      throw new BraidException(
          "the algorithm of NCCL's %s must be one of %s but was %s; leave that time out"
              .formatted(collective, algorithms, algorithm));
    }
    boolean simple =
        switch (algorithm) {
          case TREE, RING -> false;
          case COLLNET_DIRECT, COLLNET_CHAIN, NVLS, NVLS_TREE, PAT -> true;
        };
    if (simple && protocol != Protocol.SIMPLE) {
      throw new BraidException(
          "the protocol of NCCL's %s must be simple but was %s; leave that time out"
              .formatted(algorithm, protocol));
    }
    within("bytes", bytes, 1, Long.MAX_VALUE);
    within("nodes", nodes, 1, ranks);
    within("ranks", ranks, 2, Integer.MAX_VALUE);
    within("channels", channels, 1, MOST_CHANNELS);
    if (!(medianNanos > 0) || Double.isInfinite(medianNanos)) {
      throw new BraidException(
          "the time of a collective must be more than 0 ns and finite but was %s; give the median of its times"
              .formatted(medianNanos));
    }
  }

  private static void within(String name, long value, long least, long most) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s of a collective must be %d..%d but was %d; give what was measured"
              .formatted(name, least, most, value));
    }
  }
}
