package braid.schedule.simulation;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.Link;
import java.util.Collections;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// The numbers that a simulation uses; a [Machine] has them. Links, compute resources and costs are
/// also `Machine.Links`, `Machine.Compute` and `Machine.Costs`.
public interface Hardware {
  /// Links between ranks.
  ///
  /// @param inside link between two ranks of one host
  /// @param between link between two ranks of different hosts
  /// @param serial true if a rank's copies pass its link in order, as on the host backend; false if
  ///   they share the bandwidth with which a rank sends and receives
  /// @param engines number of concurrent copies per rank, except those of workers
  /// @param bytesPerWorker bytes per second that one worker copies
  /// @param bytesPerCore bytes per second that a compute unit copies; infinite if copies occupy
  ///   none
  record Links(
      Link inside,
      Link between,
      boolean serial,
      int engines,
      double bytesPerWorker,
      double bytesPerCore) {
    public Links {
      atLeast("copy engines", engines, 1);
      positive("worker bandwidth", bytesPerWorker);
      positive("copy bandwidth", bytesPerCore);
    }
  }

  /// Compute resources of ranks.
  ///
  /// @param units number of compute units of a rank, such as SMs or cores
  /// @param sharers number of ranks that share these units
  /// @param yieldingShare share of a unit that a yielding lane gets, relative to 1 for another lane
  /// @param batched true if the tiles of a gemm run as one multiplication
  /// @param memoryUnits number of units that copying or adding memory occupies
  /// @param besideCopies time of a computation while a copy of the rank is in flight ÷ its time
  ///   alone, besides the units that copies occupy
  /// @param copyBytes bytes per second that a copy within the rank moves
  /// @param reduceBytes bytes per second that a sum reads and writes
  /// @param weights attention scores per second that are replaced by their weights
  /// @param results rows of one head, per second, of a partial result of attention that are read
  ///   and written
  /// @param gemm multiplication rates by type
  /// @param attention rates of the two multiplications of attention by type: queries of all heads
  ///   are rows, keys columns, and the head size is the depth. Types without have the rates of
  ///   other multiplications
  /// @param widened elements per second that are converted to fp32, for types that are multiplied
  ///   as fp32
  /// @param narrowed elements per second that are converted from fp32, for the same types
  record Compute(
      int units,
      int sharers,
      double yieldingShare,
      boolean batched,
      int memoryUnits,
      double besideCopies,
      double copyBytes,
      double reduceBytes,
      double weights,
      double results,
      SortedMap<DType, GemmRates> gemm,
      SortedMap<DType, GemmRates> attention,
      SortedMap<DType, Double> widened,
      SortedMap<DType, Double> narrowed) {
    public Compute {
      atLeast("compute units", units, 1);
      atLeast("ranks sharing the units", sharers, 1);
      atLeast("memory units", memoryUnits, 1);
      positive("memory bandwidth", copyBytes);
      positive("reduce bandwidth", reduceBytes);
      positive("attention weights", weights);
      positive("attention results", results);
      if (!(yieldingShare > 0 && yieldingShare <= 1)) {
        throw new BraidException(
            "yielding share must be more than 0 and at most 1 but was %s; 1 for no priorities"
                .formatted(yieldingShare));
      }
      if (!(besideCopies >= 1 && besideCopies < Double.POSITIVE_INFINITY)) {
        throw new BraidException(
            "computation beside copies must take 1 times its time alone or more but took %s; 1 for no contention"
                .formatted(besideCopies));
      }
      widened.forEach((type, rate) -> positive("conversion of " + type, rate));
      narrowed.forEach((type, rate) -> positive("conversion to " + type, rate));
      if (!widened.keySet().equals(narrowed.keySet())) {
        throw new BraidException(
            "types that are converted must be the same both ways but were %s and %s; add the missing conversion"
                .formatted(widened.keySet(), narrowed.keySet()));
      }
      gemm = Collections.unmodifiableSortedMap(new TreeMap<>(gemm));
      attention = Collections.unmodifiableSortedMap(new TreeMap<>(attention));
      widened = Collections.unmodifiableSortedMap(new TreeMap<>(widened));
      narrowed = Collections.unmodifiableSortedMap(new TreeMap<>(narrowed));
    }

    /// Returns these resources with other multiplication rates, in GEMMs and in attention.
    Compute multiplying(
        SortedMap<DType, GemmRates> gemmRates, SortedMap<DType, GemmRates> attentionRates) {
      return new Compute(
          units,
          sharers,
          yieldingShare,
          batched,
          memoryUnits,
          besideCopies,
          copyBytes,
          reduceBytes,
          weights,
          results,
          gemmRates,
          attentionRates,
          widened,
          narrowed);
    }
  }

  /// Fixed costs, in nanoseconds.
  ///
  /// @param launchCopy time of the host thread to enqueue a copy
  /// @param launchCompute the same for a multiplication, a sum or other computation
  /// @param launchSignal the same for a signal or a wait for one
  /// @param launchMark the same for a mark or a wait for one
  /// @param replayedShare share of these costs that remains in a replayed iteration
  /// @param step delay before a copy or computation begins on a lane
  /// @param signal time that raising a word occupies the lane
  /// @param signalInside delay until a waiting lane of the same host continues
  /// @param signalBetween delay until a waiting lane of another host continues
  /// @param event delay until a waiting lane of the same rank continues
  /// @param oversleep time that a lane oversleeps after its link is done
  /// @param synchronize delay until the host thread notices the end of an iteration
  record Costs(
      long launchCopy,
      long launchCompute,
      long launchSignal,
      long launchMark,
      double replayedShare,
      long step,
      long signal,
      long signalInside,
      long signalBetween,
      long event,
      long oversleep,
      long synchronize) {
    /// No costs.
    public static final Costs NONE = new Costs(0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);

    public Costs {
      for (long each :
          new long[] {
            launchCopy,
            launchCompute,
            launchSignal,
            launchMark,
            step,
            signal,
            signalInside,
            signalBetween,
            event,
            oversleep,
            synchronize
          }) {
        if (each < 0) {
          throw new BraidException("a cost must be 0 ns or more but was %d ns".formatted(each));
        }
      }
      if (!(replayedShare >= 0 && replayedShare <= 1)) {
        throw new BraidException(
            "replayed launches must cost 0 to 1 times other launches but were %s; use 1 if replay saves nothing"
                .formatted(replayedShare));
      }
    }
  }

  String name();

  Optional<Calibration> calibration();

  int ranksPerHost();

  Links links();

  Compute compute();

  Costs costs();

  /// Returns the link between two ranks.
  default Link link(int from, int to) {
    return sameHost(from, to) ? links().inside() : links().between();
  }

  default boolean sameHost(int one, int other) {
    return one / ranksPerHost() == other / ranksPerHost();
  }

  /// Returns the time of a multiplication with all units of a rank.
  default double gemmNanos(DType type, double m, double n, double k) {
    var rates = Optional.ofNullable(compute().gemm().get(type));
    double conversion = 0;
    if (rates.isEmpty() && compute().widened().containsKey(type)) {
      rates = Optional.ofNullable(compute().gemm().get(DType.FP32));
      conversion = wideningNanos(type, m * k);
    }
    return conversion
        + rates
            .orElseThrow(
                () ->
                    new BraidException(
                        "machine %s has no rates of %s; it has those of %s"
                            .formatted(
                                name(),
                                type,
                                compute().gemm().keySet().stream()
                                    .map(DType::toString)
                                    .collect(Collectors.joining(", ")))))
            .nanos(m, n, k);
  }

  /// Returns the time to convert elements to fp32; 0 if no conversion is needed.
  default double wideningNanos(DType type, double elements) {
    var rate = compute().widened().get(type);
    return rate == null ? 0 : elements / rate * 1e9;
  }

  /// Returns the time to convert elements from fp32; 0 if no conversion is needed.
  default double narrowingNanos(DType type, double elements) {
    var rate = compute().narrowed().get(type);
    return rate == null ? 0 : elements / rate * 1e9;
  }

  static void atLeast(String setting, int value, int least) {
    if (value < least) {
      throw new BraidException(
          "%s must be %d or more but was %d; for example %d"
              .formatted(setting, least, value, least));
    }
  }

  private static void positive(String setting, double value) {
    if (!(value > 0)) {
      throw new BraidException(
          "%s must be more than 0 but was %s; `unlimited` for no limit".formatted(setting, value));
    }
  }
}
