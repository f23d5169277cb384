package braid.schedule.simulation;

import braid.evidence.ProfileSet;
import braid.internal.rank.Env;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.Link;
import braid.schedule.Schedule;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;

/// Hosts that ranks run on, as a simulation models them. Written as a text of settings, see
/// [#parse].
///
/// @param calibration conditions under which `braid calibrate` measured its numbers; empty if they
///   come from elsewhere, such as data sheets
/// @param ranksPerHost number of consecutive ranks that share a host
public record Machine(
    String name,
    Optional<Calibration> calibration,
    int ranksPerHost,
    Links links,
    Compute compute,
    Costs costs)
    implements Hardware, Schedule.Simulator<ProfileSet> {
  /// Iterations of which the median is predicted: the first has no earlier one to overlap with.
  private static final int TIMED_ITERATIONS = 3;

  /// Names of the built-in machines, in the order of [#names].
  private static final List<String> NAMES = List.of("h100x8", "h200x8", "h200x8x4hosts");

  public Machine {
    if (name.isBlank() || name.lines().count() != 1) {
      throw new BraidException(
          "a machine's name must be one line but was `%s`; for example h200x8".formatted(name));
    }
    name = name.strip();
    Hardware.atLeast("ranks per host", ranksPerHost, 1);
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

  /// Returns the built-in machine that is nearest to such GPUs, or what `braid calibrate` measured
  /// on this host with that number of ranks.
  public static Machine nearest(String device, int ranks) {
    return MachineCache.calibration(Env.ofProcess().cache(), device, ranks)
        .orElseGet(() -> nearest(device));
  }

  /// Returns the host backend on this host, with the configured number of ranks per host. The link
  /// is the configured one.
  public static Machine ofThisHost() {
    return ofThisHost(Env.ofProcess().local().size());
  }

  /// Returns the host backend with a number of ranks on this host, each with its share of the
  /// cores. The parts of one rank are measured, which takes a few seconds and is not a calibration;
  /// the result is stored in the cache folder. A calibration of the host backend is used only where
  /// it is given, by [#parse]: no measurement shows yet that its predictions are better.
  public static Machine ofThisHost(int ranks) {
    Hardware.atLeast("ranks of this host", ranks, 1);
    var env = Env.ofProcess();
    return MachineCache.of(ranks, env.cache()).withLink(env.link());
  }

  /// Returns processor and cores of this host, for tables: `AMD EPYC 9254, 24 cores`.
  public static String host() {
    return "%s, %d cores"
        .formatted(MachineCache.processor(), Runtime.getRuntime().availableProcessors());
  }

  /// Returns this machine with other values of some settings, as [#toString] writes them.
  ///
  /// ```java
  /// machine.with(Map.of("reduce bandwidth", "3000GB/s", "event", "2us"));
  /// ```
  public Machine with(Map<String, String> settings) {
    return MachineText.with(this, settings);
  }

  /// Returns this machine with other multiplication rates, in GEMMs and in attention.
  public Machine withRates(
      SortedMap<DType, GemmRates> gemm, SortedMap<DType, GemmRates> attention) {
    return new Machine(
        name, calibration, ranksPerHost, links, compute.multiplying(gemm, attention), costs);
  }

  /// Returns the time of the host thread of a rank to enqueue an iteration.
  public long launchNanos(Schedule schedule, int rank) {
    return SimulatedRun.launchNanos(schedule, this, rank);
  }

  /// Returns this machine with another link between all ranks.
  public Machine withLink(Link link) {
    return new Machine(
        name,
        calibration,
        ranksPerHost,
        new Links(
            link,
            link,
            links.serial(),
            links.engines(),
            links.bytesPerWorker(),
            links.bytesPerCore()),
        compute,
        costs);
  }

  /// Returns this machine with another number of consecutive ranks per host.
  ///
  /// ```java
  /// own.simulate(Machine.named("h200x8x4hosts").withRanksPerHost(2)); // pairs of ranks
  /// ```
  public Machine withRanksPerHost(int number) {
    return new Machine(name, calibration, number, links, compute, costs);
  }

  /// Returns the name for captions: "h200x8, not calibrated", or "2 ranks of this host, calibrated
  /// on NVIDIA H200, 2026-11-26".
  public String title() {
    return name + ", " + calibration.map(Calibration::toString).orElse("not calibrated");
  }

  /// Predicts iterations of a schedule; see [Schedule#simulate(Schedule.Simulator, int)].
  @Override
  public ProfileSet simulate(Schedule schedule, int iterations) {
    return SimulatedRun.of(schedule, this, iterations, false);
  }

  /// Predicts the time of an iteration as a pipeline's `time` measures it by default. On GPUs a
  /// replayed iteration is enqueued while earlier ones run. An eager one takes longer than its work
  /// by about a synchronization with the host.
  public double iterationNanos(Schedule schedule) {
    return SimulatedRun.of(
            schedule,
            this,
            TIMED_ITERATIONS,
            compute.batched() && SimulatedRun.isReplayed(schedule))
        .summary()
        .medianNanos();
  }

  /// Returns the settings, as [#parse] reads them.
  @Override
  public String toString() {
    return MachineText.write(this);
  }
}
