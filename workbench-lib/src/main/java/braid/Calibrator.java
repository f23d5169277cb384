package braid;

import braid.CalibrationCases.Case;
import braid.CalibrationCases.Part;
import braid.internal.report.progress.Progress;
import braid.model.AttentionSpec;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Link;
import braid.model.Overlap;
import braid.natives.WholeFile;
import braid.schedule.simulation.Calibration;
import braid.schedule.simulation.GemmRates;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/// Measures the machine that a group's ranks run on, for simulations.
///
/// ```java
/// Machine machine = Calibrator.on(world).measure();
/// ```
///
/// All ranks run pipelines together, as a user's are run. The rates of multiplications and of
/// attention by shape and type are measured directly. Every other number is chosen such that the
/// simulated time of one part of some pipelines is the measured one: a number after those that its
/// pipelines also depend on.
///
/// Pipelines on one host do not use a link between hosts, for example. Such numbers keep the value
/// of the machine that the measurement begins with, and are listed as missing.
public final class Calibrator {
  private static final int ROOT = 0;
  private static final Progress.Task CALIBRATING =
      new Progress.Task("calibrating", "calibrated", "steps");

  /// Most passes over all pipelines, far apart, because a machine may be slow for seconds.
  private static final int PASSES = 6;

  /// Time of all passes, unless one takes longer: a calibration takes a minute at most.
  private static final long MOST_PASSES_NANOS = TimeUnit.SECONDS.toNanos(40);

  private final ProcessGroup group;
  private final boolean host;
  private final SequencedSet<String> missing = new LinkedHashSet<>();
  private final CalibrationCases cases;
  private final CalibrationShapes shapes;
  private final CalibrationNumbers numbers;
  private Machine machine = Machine.h100x8();

  /// Types that the ranks multiply, and attend with; the host does both as fp32.
  private List<DType> multiplied = List.of(DType.FP32);

  private List<DType> attended = List.of(DType.FP32);

  private Calibrator(ProcessGroup group) {
    this.group = group;
    this.host = group.context().backend().kind() == BackendKind.HOST;
    this.cases = new CalibrationCases(group);
    this.shapes = new CalibrationShapes(group.size(), host);
    this.numbers = new CalibrationNumbers(shapes, cases);
  }

  /// Returns a calibrator of the machine that the group's ranks run on: all ranks of a host.
  public static Calibrator on(ProcessGroup group) {
    Given.check("group", group);
    if (group.context().backend().ranksPerDevice() != 1) {
      throw new BraidException(
          "a calibration needs times that count but ranks share a GPU; try as many ranks as GPUs, or --backend host");
    }
    return new Calibrator(group);
  }

  /// Measures the machine, in about a minute. All ranks call it together and return the same. The
  /// link is the one that the host backend plays, or that connects the GPUs.
  public Machine measure() {
    return measure(PASSES, MOST_PASSES_NANOS, () -> {});
  }

  /// Measures the machine in passes, and calls a task after each, on all ranks: what it measures is
  /// then measured under the same load.
  ///
  /// @param most number of passes, if they take at most `mostNanos`
  Machine measure(int most, long mostNanos, Runnable afterPass) {
    var played = host ? Link.parse(group.context().backend().link()) : Link.UNLIMITED;
    boolean root = group.rank() == ROOT;
    machine = Machine.parse(group.broadcast(root ? described().toString() : "", ROOT));
    if (!host) {
      multiplied = machine.compute().gemm().keySet().stream().filter(this::isMultiplied).toList();
      attended = multiplied.stream().filter(type -> type.bytes() == DType.BF16.bytes()).toList();
    }
    try {
      measurePasses(root, most, mostNanos, afterPass);
    } finally {
      play(played);
    }
    derive();
    var measured = calibrated(host ? machine.withLink(played) : machine);
    return Machine.parse(group.broadcast(measured.toString(), ROOT));
  }

  private void play(Link link) {
    if (host) {
      group.playLink(link);
    }
  }

  private void measurePasses(boolean root, int most, long mostNanos, Runnable afterPass) {
    var all = new LinkedHashSet<Case>();
    multiplied.forEach(type -> all.addAll(shapes.gemms(type)));
    attended.forEach(type -> all.addAll(shapes.attentions(type)));
    numbers.quantities(machine).forEach(quantity -> all.addAll(quantity.cases()));
    var batches = CalibrationCases.batches(all);
    long start = System.nanoTime();
    try (var progress =
        Progress.of(CALIBRATING, most * batches.size(), group.context().outbox(), root)) {
      boolean more = true;
      for (int pass = 1; more; pass++) {
        play(Link.UNLIMITED);
        for (var batch : batches) {
          progress.step("pass %d, %d at most".formatted(pass, most));
          cases.measure(batch);
        }
        afterPass.run();
        long passed = System.nanoTime() - start;
        boolean fits = passed + passed / pass < mostNanos;
        more = group.broadcast(pass < most && fits ? 1L : 0L, ROOT) == 1;
      }
      progress.finished(device());
    }
  }

  /// Computes the machine from the times of all pipelines.
  private void derive() {
    if (host) {
      machine = machine.withLink(Link.UNLIMITED);
    }
    var gemm = new TreeMap<>(machine.compute().gemm());
    var attention = new TreeMap<>(machine.compute().attention());
    multiplied.forEach(type -> gemm.put(type, rates(type)));
    attended.forEach(type -> attention.put(type, attentionRates(type)));
    if (host) {
      gemm.put(DType.TF32, gemm.get(DType.FP32));
    }
    // The time of weights and results is in the attention's rates.
    machine =
        machine
            .withRates(gemm, attention)
            .with(Map.of("weights", "unlimited", "results", "unlimited"));
    for (var quantity : numbers.quantities(machine)) {
      numbers
          .fitted(machine, quantity)
          .ifPresentOrElse(better -> machine = better, () -> missing.addAll(quantity.names()));
    }
    gemm.keySet().stream()
        .filter(type -> !multiplied.contains(type) && !(host && type == DType.TF32))
        .forEach(type -> missing.add("gemm " + type));
    if (group.size() == 1) {
      missing.addAll(List.of(CalibrationNumbers.LINK, "reduce bandwidth"));
    }
    if (!host || group.size() == 1) {
      missing.addAll(List.of("signal inside a host", "event"));
    }
    if (host || group.size() == 1) {
      missing.add("worker bandwidth");
    }
    missing.addAll(
        List.of(
            "link between hosts", "signal between hosts", "yielding share", "replayed launches"));
  }

  /// Returns the machine whose numbers hold until they are measured.
  private Machine described() {
    return host
        ? Machine.ofThisHost(localRanks())
        : Machine.nearest(group.context().backend().deviceName());
  }

  private int localRanks() {
    return group.context().env().local().size();
  }

  private String device() {
    return group.context().backend().deviceName();
  }

  /// Keeps a measured machine in the cache folder, where predictions on GPUs find it. One rank
  /// calls it.
  public Path keep(Machine measured) {
    return save(measured, Calibration.file(group.context().env().cache(), device(), localRanks()));
  }

  /// Writes a machine to a file, for `Machine.parse`.
  public static Path save(Machine measured, Path file) {
    try {
      var folder = file.toAbsolutePath().getParent();
      if (folder != null) {
        Files.createDirectories(folder);
      }
      WholeFile.write(file, measured.toString());
      return file;
    } catch (IOException e) {
      throw new BraidException(
          "the calibration must be written to %s but cannot be (%s); choose another file, or set BRAID_CACHE"
              .formatted(file, e),
          e);
    }
  }

  private Machine calibrated(Machine measured) {
    var versions = new ArrayList<String>();
    AutoTuning.versions(group).forEach((name, version) -> versions.add(name + " " + version));
    var conditions =
        new Calibration(
            device(),
            String.join("; ", versions).replaceAll("\\s+", " "),
            localRanks(),
            Clock.systemUTC().instant(),
            List.copyOf(missing));
    return new Machine(
        "%d ranks of this host".formatted(localRanks()),
        Optional.of(conditions),
        localRanks(),
        measured.links(),
        measured.compute(),
        measured.costs());
  }

  /// Returns whether the GPUs multiply a type: not every GPU has fp8.
  private boolean isMultiplied(DType type) {
    int size = shapes.sizes(type).rows().getFirst();
    var spec = shapes.gathered(size * group.size(), size, size, type);
    try (var pipeline = CalibrationCases.build(group, new Case(spec, Overlap.unfused()))) {
      return pipeline.problem().dtype() == type;
    } catch (GroupAborted e) {
      throw e;
    } catch (BraidException e) {
      return false;
    }
  }

  private GemmRates rates(DType type) {
    var sizes = shapes.sizes(type);
    var gflops = new ArrayList<Double>();
    for (var each : shapes.gemms(type)) {
      var spec = (GemmSpec) each.problem();
      int n = spec.n() / group.size();
      double flops = 2.0 * spec.m() * n * spec.k();
      gflops.add(
          rate(
              "gemm %s %dx%dx%d".formatted(type, spec.m(), n, spec.k()),
              flops / cases.nanos(each, Part.MULTIPLYING),
              flops / machine.gemmNanos(type, spec.m(), n, spec.k())));
    }
    return new GemmRates(sizes.rows(), sizes.others(), sizes.others(), gflops);
  }

  /// Returns a measured rate with six digits or more, or the rate before if noise has made the
  /// measured one impossible; it is then missing.
  private double rate(String name, double measured, double before) {
    boolean plausible =
        measured > before / CalibrationNumbers.MOST_CHANGE
            && measured < before * CalibrationNumbers.MOST_CHANGE;
    if (!plausible) {
      missing.add(name);
    }
    return Math.rint(1e3 * (plausible ? measured : before)) / 1e3;
  }

  private GemmRates attentionRates(DType type) {
    var gflops = new ArrayList<Double>();
    for (var each : shapes.attentions(type)) {
      var spec = (AttentionSpec) each.problem();
      double flops =
          4.0 * spec.sequence() / group.size() * spec.heads() * spec.sequence() * spec.headSize();
      gflops.add(
          rate(
              "attention " + spec,
              flops / cases.nanos(each, Part.ATTENDING),
              flops / cases.simulated(machine, each, Part.ATTENDING)));
    }
    var sizes = shapes.attentionSizes();
    return new GemmRates(sizes.rows(), sizes.others(), CalibrationShapes.HEAD_SIZES, gflops);
  }
}
