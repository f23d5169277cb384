package braid.schedule.simulation;

import braid.internal.rank.Env;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Link;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// The hosts that ranks run on, as far as a simulation needs them. It is written as a text of
/// settings, see [#parse].
///
/// @param calibrated whether its numbers were measured on such a machine
/// @param ranksPerHost ranks from a multiple of that on share a host
public record Machine(
    String name, boolean calibrated, int ranksPerHost, Links links, Compute compute, Costs costs) {
  /// Machines that are described here, in the order in which people read of them.
  private static final List<String> NAMES = List.of("h100x8", "h200x8", "h200x8x4hosts");

  /// How bytes get from rank to rank.
  ///
  /// @param inside between two ranks of a host
  /// @param between two ranks of different hosts
  /// @param serial whether the copies that a rank makes pass its link one after the other, as on
  ///   the host backend; else they share what a rank may send and receive
  /// @param engines copies that a rank may have on their way at once, but for workers'
  /// @param bytesPerWorker bytes a second that one worker moves
  /// @param bytesPerCore bytes a second that a compute unit moves where copies take one; infinite
  ///   where they take none
  public record Links(
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

  /// The means by which ranks compute.
  ///
  /// @param units compute units of a rank, such as SMs or cores
  /// @param sharers ranks that share these units
  /// @param yieldingShare what a yielding lane gets of a unit, where another lane gets 1
  /// @param batched whether the tiles of a gemm are one multiplication
  /// @param memoryUnits units that are busy while memory is copied or added up
  /// @param copyBytes bytes a second that a copy within the rank moves
  /// @param reduceBytes bytes a second that a sum reads and writes
  /// @param gemm rates by type
  /// @param widened elements a second that are converted, of types that are multiplied as fp32
  public record Compute(
      int units,
      int sharers,
      double yieldingShare,
      boolean batched,
      int memoryUnits,
      double copyBytes,
      double reduceBytes,
      SortedMap<DType, GemmRates> gemm,
      SortedMap<DType, Double> widened) {
    public Compute {
      atLeast("compute units", units, 1);
      atLeast("ranks sharing the units", sharers, 1);
      atLeast("memory units", memoryUnits, 1);
      positive("memory bandwidth", copyBytes);
      positive("reduce bandwidth", reduceBytes);
      if (!(yieldingShare > 0 && yieldingShare <= 1)) {
        throw new BraidException(
            "yielding share must be more than 0 and at most 1 but was %s; 1 for no priorities"
                .formatted(yieldingShare));
      }
      widened.forEach((type, rate) -> positive("conversion of " + type, rate));
      gemm = Collections.unmodifiableSortedMap(new TreeMap<>(gemm));
      widened = Collections.unmodifiableSortedMap(new TreeMap<>(widened));
    }
  }

  /// Fixed costs, in nanoseconds.
  ///
  /// @param launchCopy for the host thread to enqueue a copy
  /// @param launchCompute the same for a multiplication, a sum and what else computes
  /// @param launchSignal the same for a signal and a wait for one
  /// @param launchMark the same for a mark and a wait for one
  /// @param replayedShare what of these remains where an iteration is replayed
  /// @param step before any copy or computation begins on a lane
  /// @param signal for which raising a word keeps the lane
  /// @param signalInside until a waiting lane of the same host goes on
  /// @param signalBetween until a waiting lane of another host goes on
  /// @param event until a waiting lane of the same rank goes on
  /// @param oversleep for which a lane sleeps on after its link is through
  /// @param synchronize until the host thread knows that an iteration has ended
  public record Costs(
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
    /// Nothing costs anything.
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
            "replayed launches must cost 0 to 1 of others but were %s; 1 where replaying saves nothing"
                .formatted(replayedShare));
      }
    }
  }

  public Machine {
    if (name.isBlank() || name.lines().count() != 1) {
      throw new BraidException(
          "a machine's name must be one line but was `%s`; for example h200x8".formatted(name));
    }
    name = name.strip();
    atLeast("ranks per host", ranksPerHost, 1);
  }

  private static void atLeast(String setting, int value, int least) {
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

  /// 8 × H100 SXM of one host, all connected by NVLink. Not calibrated.
  public static Machine h100x8() {
    return named("h100x8");
  }

  /// 8 × H200 of one host, all connected by NVLink. Not calibrated.
  public static Machine h200x8() {
    return named("h200x8");
  }

  /// A machine that is described here: `h100x8`, `h200x8` or `h200x8x4hosts`.
  public static Machine named(String name) {
    if (!NAMES.contains(name)) {
      throw new BraidException(
          "a machine must be one of %s but was `%s`; read others with Machine.parse"
              .formatted(String.join(", ", NAMES), name));
    }
    var resource = "/braid/machines/" + name + ".txt";
    try (InputStream text = Machine.class.getResourceAsStream(resource)) {
      if (text == null) {
        throw new IllegalStateException("the description %s is missing".formatted(resource));
      }
      return parse(new String(text.readAllBytes(), StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Names that [#named] knows.
  public static List<String> names() {
    return NAMES;
  }

  /// Reads settings as [#toString] writes them: a line for each, `#` begins a comment.
  public static Machine parse(String text) {
    return MachineText.parse(text);
  }

  /// The host backend on this host, with as many ranks as the host has, measured in a few seconds
  /// and kept in the cache folder. The link is the configured one.
  public static Machine ofThisHost() {
    return ofThisHost(Env.ofProcess().local().size());
  }

  /// The same with that many ranks on this host: each gets its share of the cores.
  public static Machine ofThisHost(int ranks) {
    atLeast("ranks of this host", ranks, 1);
    var env = Env.ofProcess();
    return MachineCache.of(ranks, env.cache()).withLink(env.link());
  }

  /// The same with that link between all ranks.
  public Machine withLink(Link link) {
    return new Machine(
        name,
        calibrated,
        ranksPerHost,
        new Links(
            link, link, links.serial, links.engines, links.bytesPerWorker, links.bytesPerCore),
        compute,
        costs);
  }

  /// The link between two ranks.
  Link link(int from, int to) {
    return sameHost(from, to) ? links.inside : links.between;
  }

  boolean sameHost(int one, int other) {
    return one / ranksPerHost == other / ranksPerHost;
  }

  /// How long a multiplication takes with all units of a rank.
  public double gemmNanos(DType type, double m, double n, double k) {
    var rates = Optional.ofNullable(compute.gemm.get(type));
    double conversion = 0;
    if (rates.isEmpty() && compute.widened.containsKey(type)) {
      rates = Optional.ofNullable(compute.gemm.get(DType.FP32));
      conversion = conversionNanos(type, m * k);
    }
    return conversion
        + rates
            .orElseThrow(
                () ->
                    new BraidException(
                        "machine %s has no rates of %s; it has those of %s"
                            .formatted(
                                name,
                                type,
                                compute.gemm.keySet().stream()
                                    .map(DType::toString)
                                    .collect(Collectors.joining(", ")))))
            .nanos(m, n, k);
  }

  /// How long elements take to be converted to or from fp32; nothing where no conversion is needed.
  public double conversionNanos(DType type, double elements) {
    var rate = compute.widened.get(type);
    return rate == null ? 0 : elements / rate * 1e9;
  }

  /// As [#parse] reads it.
  @Override
  public String toString() {
    return MachineText.write(this);
  }
}
