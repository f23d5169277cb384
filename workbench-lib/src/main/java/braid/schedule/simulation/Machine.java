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

/// Hosts that ranks run on, as a simulation models them. Written as a text of settings, see
/// [#parse].
///
/// @param calibrated true if its numbers were measured on such a machine
/// @param ranksPerHost number of consecutive ranks that share a host
public record Machine(
    String name, boolean calibrated, int ranksPerHost, Links links, Compute compute, Costs costs) {
  /// Names of the built-in machines, in the order of [#names].
  private static final List<String> NAMES = List.of("h100x8", "h200x8", "h200x8x4hosts");

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

  /// Compute resources of ranks.
  ///
  /// @param units number of compute units of a rank, such as SMs or cores
  /// @param sharers number of ranks that share these units
  /// @param yieldingShare share of a unit that a yielding lane gets, relative to 1 for another lane
  /// @param batched true if the tiles of a gemm run as one multiplication
  /// @param memoryUnits number of units that copying or adding memory occupies
  /// @param copyBytes bytes per second that a copy within the rank moves
  /// @param reduceBytes bytes per second that a sum reads and writes
  /// @param weights attention scores per second that are replaced by their weights
  /// @param results rows of one head, per second, of a partial result of attention that are read
  ///   and written
  /// @param gemm multiplication rates by type
  /// @param attention rates of the two multiplications of a tile of attention by type: queries are
  ///   rows, keys columns, and the head size is the depth. The largest size is a full tile. Types
  ///   without have the rates of other multiplications
  /// @param widened elements per second that are converted, for types that are multiplied as fp32
  public record Compute(
      int units,
      int sharers,
      double yieldingShare,
      boolean batched,
      int memoryUnits,
      double copyBytes,
      double reduceBytes,
      double weights,
      double results,
      SortedMap<DType, GemmRates> gemm,
      SortedMap<DType, GemmRates> attention,
      SortedMap<DType, Double> widened) {
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
      widened.forEach((type, rate) -> positive("conversion of " + type, rate));
      gemm = Collections.unmodifiableSortedMap(new TreeMap<>(gemm));
      attention = Collections.unmodifiableSortedMap(new TreeMap<>(attention));
      widened = Collections.unmodifiableSortedMap(new TreeMap<>(widened));
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

  /// Returns 8 × H100 SXM of one host, all connected by NVLink. Not calibrated.
  public static Machine h100x8() {
    return named("h100x8");
  }

  /// Returns 8 × H200 of one host, all connected by NVLink. Not calibrated.
  public static Machine h200x8() {
    return named("h200x8");
  }

  /// Returns a built-in machine: `h100x8`, `h200x8` or `h200x8x4hosts`.
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

  /// Returns the built-in machine of one host that is nearest to a host with such GPUs.
  ///
  /// @param device name of the GPU, such as `NVIDIA H200`
  public static Machine nearest(String device) {
    return device.contains("H200") ? h200x8() : h100x8();
  }

  /// Returns the names that [#named] accepts.
  public static List<String> names() {
    return NAMES;
  }

  /// Reads settings as [#toString] writes them: one per line; `#` begins a comment.
  public static Machine parse(String text) {
    return MachineText.parse(text);
  }

  /// Measures the host backend on this host, with the configured number of ranks per host. Takes a
  /// few seconds; the result is stored in the cache folder. The link is the configured one.
  public static Machine ofThisHost() {
    return ofThisHost(Env.ofProcess().local().size());
  }

  /// Measures the host backend with a number of ranks on this host, each with its share of the
  /// cores.
  public static Machine ofThisHost(int ranks) {
    atLeast("ranks of this host", ranks, 1);
    var env = Env.ofProcess();
    return MachineCache.of(ranks, env.cache()).withLink(env.link());
  }

  /// Returns this machine with another link between all ranks.
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

  /// Returns the name for captions: "h200x8, not calibrated".
  public String title() {
    return name + (calibrated ? "" : ", not calibrated");
  }

  /// Returns the link between two ranks.
  Link link(int from, int to) {
    return sameHost(from, to) ? links.inside : links.between;
  }

  boolean sameHost(int one, int other) {
    return one / ranksPerHost == other / ranksPerHost;
  }

  /// Returns the time of a multiplication with all units of a rank.
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

  /// Returns the time to convert elements to or from fp32; 0 if no conversion is needed.
  public double conversionNanos(DType type, double elements) {
    var rate = compute.widened.get(type);
    return rate == null ? 0 : elements / rate * 1e9;
  }

  /// Returns the settings, as [#parse] reads them.
  @Override
  public String toString() {
    return MachineText.write(this);
  }
}
