package braid.launcher.bench.report;

import java.util.Map;
import java.util.Optional;

/// One measured quantity: for Braid by number of ranks, and for the peer.
public record Row(
    String what,
    String unit,
    Map<Integer, Measure> byRanks,
    Optional<Limit> limit,
    Optional<Measure> peer) {
  /// Upper limit of the median, at a number of ranks.
  public record Limit(double most, int ranks) {}

  public enum Verdict {
    MET,
    MISSED,
    UNMEASURED;

    String word() {
      return switch (this) {
        case MET -> "met";
        case MISSED -> "MISSED";
        case UNMEASURED -> "not measured";
      };
    }
  }

  public Row {
    byRanks = Map.copyOf(byRanks);
  }

  public Optional<Verdict> verdict() {
    return limit.map(
        l -> {
          var measure = byRanks.get(l.ranks);
          if (measure == null) {
            return Verdict.UNMEASURED;
          }
          return measure.median() <= l.most ? Verdict.MET : Verdict.MISSED;
        });
  }

  /// Ratio of Braid's median to the peer's, with the same number of ranks and engines.
  Optional<Double> ratio() {
    var braid = Optional.ofNullable(byRanks.get(FrontReport.PEER_ENGINES));
    return braid.flatMap(b -> peer.map(p -> b.median() / p.median()));
  }
}
