package braid.export;

import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import java.util.List;

/// One run of a collective: when each rank began and ended it, on one clock.
///
/// @param elements elements of a rank's larger tensor: the gathered one of an all-gather, the input
///   of a reduce-scatter
/// @param ranks interval of each rank, by rank
public record CollectiveRun(
    Collective collective, DType dtype, long elements, List<Interval> ranks) {
  /// Begin and end on a rank, in nanoseconds.
  public record Interval(long startNanos, long endNanos) {
    public Interval {
      if (startNanos < 0 || endNanos <= startNanos) {
        throw new BraidException(
            "an interval must begin at 0 or later and end after it but was %d..%d; give nanoseconds of the group's clock"
                .formatted(startNanos, endNanos));
      }
    }
  }

  public CollectiveRun {
    ranks = List.copyOf(ranks);
    if (ranks.size() < 2) {
      throw new BraidException(
          "a run of a collective needs intervals of 2 ranks or more but has %d; give one for each rank"
              .formatted(ranks.size()));
    }
    boolean divided =
        switch (collective) {
          case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL -> true;
          case ALL_REDUCE -> false;
          case BROADCAST, SEND, RECEIVE, BARRIER ->
              throw new BraidException(
                  "a collective for Inductor must be all-gather, reduce-scatter, all-reduce or all-to-all but was %s; leave it out"
                      .formatted(collective));
        };
    if (elements < 1 || (divided && elements % ranks.size() != 0)) {
      throw new BraidException(
          "elements of a %s on %d ranks must be 1 or more%s but were %d; give those of the larger tensor"
              .formatted(
                  collective, ranks.size(), divided ? " and a part for each" : "", elements));
    }
    long arrival = ranks.stream().mapToLong(Interval::startNanos).max().orElseThrow();
    long first = ranks.stream().mapToLong(Interval::endNanos).min().orElseThrow();
    if (first <= arrival) {
      throw new BraidException(
          "a %s cannot end before its last rank begins, but one rank ended at %d ns and one began at %d ns; measure on one clock"
              .formatted(collective, first, arrival));
    }
  }

  /// Returns when the last rank began: from then on nobody waits for it.
  long arrivalNanos() {
    return ranks.stream().mapToLong(Interval::startNanos).max().orElseThrow();
  }

  /// Returns the time from the last begin to the last end.
  long nanos() {
    return ranks.stream().mapToLong(Interval::endNanos).max().orElseThrow() - arrivalNanos();
  }
}
