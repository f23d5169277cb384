package braid;

import braid.CalibrationCases.Case;
import braid.internal.report.progress.Progress;
import braid.internal.report.statistics.Spread;
import braid.model.AttentionSpec;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import braid.natives.WholeFile;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.simulation.Calibration;
import braid.schedule.simulation.GemmRates;
import braid.schedule.simulation.Hardware.Compute;
import braid.schedule.simulation.Hardware.Costs;
import braid.schedule.simulation.Hardware.Links;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
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
/// All ranks run pipelines together, as a user's are run, and each number comes from the lowest of
/// their spans and times. Numbers build on each other, in this order:
///
/// 1. multiplication rates by shape and type, from unfused pipelines;
/// 2. conversions of types that are multiplied as fp32;
/// 3. rates of sums, of local copies and of copies between ranks, and how much copies slow
///    multiplications beside them;
/// 4. attention, besides its multiplications;
/// 5. launch costs, from the time to enqueue pipelines without work to speak of;
/// 6. fixed costs: the begin and end of an iteration and of a step, such that the simulated times
///    of these pipelines are the measured ones.
///
/// What a pipeline cannot show, such as a link between hosts, keeps the value of the machine that
/// the measurement begins with, and is listed as missing.
public final class Calibrator {
  private static final int ROOT = 0;
  private static final String LINK = "link inside a host";
  private static final String WORKER_BANDWIDTH = "worker bandwidth";
  private static final String REDUCE_BANDWIDTH = "reduce bandwidth";
  private static final String CONTENTION = "computation beside copies";
  private static final Progress.Task CALIBRATING =
      new Progress.Task("calibrating", "calibrated", "steps");

  /// Sizes that rates are measured for.
  ///
  /// @param rows numbers of rows
  /// @param others numbers of columns, and depths
  private record Sizes(List<Integer> rows, List<Integer> others) {
    static final Sizes HOST =
        new Sizes(List.of(16, 64, 256, 1024), List.of(80, 272, 528, 1040, 2064));
    static final Sizes GPU =
        new Sizes(List.of(128, 256, 512, 1024, 2048, 4096, 8192), List.of(1024, 8192));
  }

  /// Most passes over all pipelines, far apart, because a machine may be slow for seconds.
  private static final int PASSES = 6;

  /// Time of all passes, unless one takes longer: a calibration takes a minute at most.
  private static final long MOST_PASSES_NANOS = TimeUnit.SECONDS.toNanos(45);

  /// Rows and columns of parts that are copied and added.
  private static final List<Integer> PART_ROWS = List.of(64, 256, 1024, 4096);

  private static final int PART_COLUMNS = 1024;

  private static final int CONVERTED_ROWS = 256;
  private static final int CONVERTED_DEPTH = 64;

  /// Size of multiplications that take no time to speak of.
  private static final int TINY = 16;

  /// Largest change of a number by the measurement; what changes more is noise. An unknown GPU may
  /// have links of a twentieth of the nearest built-in machine's.
  private static final double MOST_CHANGE = 30;

  private static final List<Integer> SPLITS = List.of(1, 4, 8);

  /// Amount by which a cost is varied, to see its effect on simulated times.
  private static final long VARIED_NANOS = 10_000;

  /// Rounds of a fit, in each of which every number is improved once.
  private static final int FIT_ROUNDS = 200;

  private static final Overlap ENGINE = Overlap.ring(1);
  private static final Overlap WORKER = Overlap.ring(1).over(Transport.WORKERS).workers(1);
  private static final int ATTENTION_FITS = 4;
  private static final int COST_FITS = 3;
  private static final int SIMULATED = 3;

  private final ProcessGroup group;
  private final boolean host;
  private final SequencedSet<String> missing = new LinkedHashSet<>();
  private final CalibrationCases cases;
  private Machine machine = Machine.h100x8();

  /// Types that the ranks multiply; the host multiplies all as fp32.
  private List<DType> tables = List.of();

  private Calibrator(ProcessGroup group) {
    this.group = group;
    this.host = group.context().backend().kind() == BackendKind.HOST;
    this.cases = new CalibrationCases(group);
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
    var played = host ? Link.parse(group.context().backend().link()) : Link.UNLIMITED;
    boolean root = group.rank() == ROOT;
    machine = Machine.parse(group.broadcast(root ? described().toString() : "", ROOT));
    if (host) {
      group.playLink(Link.UNLIMITED);
      machine = machine.withLink(Link.UNLIMITED);
    }
    tables = tables();
    try {
      measurePasses(root);
      derive();
    } finally {
      if (host) {
        group.playLink(played);
      }
    }
    var measured = calibrated(host ? machine.withLink(played) : machine);
    return Machine.parse(group.broadcast(measured.toString(), ROOT));
  }

  private void measurePasses(boolean root) {
    var batches = CalibrationCases.batches(all());
    int steps = PASSES * batches.size();
    long start = System.nanoTime();
    try (var progress = Progress.of(CALIBRATING, steps, group.context().outbox(), root)) {
      boolean more = true;
      for (int pass = 1; more; pass++) {
        for (var batch : batches) {
          progress.step("pass %d, %d at most".formatted(pass, PASSES));
          cases.measure(batch);
        }
        long passed = System.nanoTime() - start;
        boolean fits = passed + passed / pass < MOST_PASSES_NANOS;
        more = group.broadcast(pass < PASSES && fits ? 1L : 0L, ROOT) == 1;
      }
      progress.finished(device());
    }
  }

  /// Returns all pipelines that are measured.
  private SequencedSet<Case> all() {
    var all = new LinkedHashSet<Case>();
    tables.forEach(type -> all.addAll(multiplied(type)));
    machine.compute().widened().keySet().forEach(type -> all.add(converted(type)));
    all.addAll(attended());
    all.addAll(tiny());
    if (group.size() > 1) {
      all.addAll(added());
      all.addAll(copied(ENGINE));
      all.addAll(copied(WORKER));
      all.addAll(besideCopies());
    }
    return all;
  }

  /// Computes the machine from the times of all pipelines.
  private void derive() {
    tables.forEach(this::multiplications);
    conversions();
    if (group.size() > 1) {
      sums();
      copies();
      contention();
    } else {
      missing.addAll(List.of(LINK, WORKER_BANDWIDTH, REDUCE_BANDWIDTH, CONTENTION));
    }
    attention();
    launchesAndFixedCosts();
    missing.addAll(
        List.of(
            "link between hosts", "signal between hosts", "yielding share", "replayed launches"));
  }

  /// Returns the machine whose numbers hold until they are measured.
  private Machine described() {
    return host
        ? Machine.ofOneRank(localRanks())
        : Machine.nearest(group.context().backend().deviceName());
  }

  private int localRanks() {
    return group.context().env().local().size();
  }

  private String device() {
    return host ? Machine.host() : group.context().backend().deviceName();
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

  private void update(Links links, Compute compute, Costs costs) {
    machine =
        new Machine(
            machine.name(), machine.calibration(), machine.ranksPerHost(), links, compute, costs);
  }

  private void update(Compute compute) {
    update(machine.links(), compute, machine.costs());
  }

  private Sizes sizes() {
    return host ? Sizes.HOST : Sizes.GPU;
  }

  private List<DType> tables() {
    if (host) {
      return List.of(DType.FP32);
    }
    var multiplied = new ArrayList<DType>();
    for (var type : machine.compute().gemm().keySet()) {
      if (isMultiplied(type)) {
        multiplied.add(type);
      } else {
        missing.add("gemm " + type);
      }
    }
    return multiplied;
  }

  /// Returns whether the GPUs multiply a type: not every GPU has fp8.
  private boolean isMultiplied(DType type) {
    try (var pipeline =
        CalibrationCases.build(group, new Case(gathered(128, 128, 128, type), Overlap.unfused()))) {
      return pipeline.problem().dtype() == type;
    } catch (GroupAborted e) {
      throw e;
    } catch (BraidException e) {
      return false;
    }
  }

  /// Returns the measured number, or the number before if noise has made the measured one
  /// impossible; the setting is then missing.
  private double plausible(String setting, double measured, double before) {
    if (isPlausible(measured, before)) {
      return measured;
    }
    missing.add(setting);
    return before;
  }

  private static boolean isPlausible(double measured, double before) {
    return measured > before / MOST_CHANGE && measured < before * MOST_CHANGE;
  }

  /// Returns the simulated time of a stage of an iteration, on rank 0.
  private double simulatedNanos(Case given, Stage stage) {
    return given.schedule(group.size()).simulate(machine, 1).profiles().getFirst().spans().stream()
        .filter(span -> span.stage() == stage)
        .mapToLong(Span::nanos)
        .sum();
  }

  private GemmSpec gathered(int m, int n, int k, DType type) {
    return GemmSpec.allGatherGemm(m, n * group.size(), k).dtype(type);
  }

  // Multiplications and conversions.

  private List<Case> multiplied(DType type) {
    var made = new ArrayList<Case>();
    for (int n : sizes().others()) {
      for (int k : sizes().others()) {
        for (int m : sizes().rows()) {
          made.add(new Case(gathered(m, n, k, type), Overlap.unfused()));
        }
      }
    }
    return made;
  }

  private void multiplications(DType type) {
    var gflops = new ArrayList<Double>();
    for (var each : multiplied(type)) {
      var spec = (GemmSpec) each.problem();
      int n = spec.n() / group.size();
      double flops = 2.0 * spec.m() * n * spec.k();
      gflops.add(
          rounded(
              plausible(
                  "gemm %s %dx%dx%d".formatted(type, spec.m(), n, spec.k()),
                  flops / cases.times(each).nanos(Stage.GEMM),
                  flops / machine.gemmNanos(type, spec.m(), n, spec.k()))));
    }
    var measured = new GemmRates(sizes().rows(), sizes().others(), sizes().others(), gflops);
    var rates = new TreeMap<>(machine.compute().gemm());
    rates.put(type, measured);
    if (host) {
      rates.put(DType.TF32, measured);
    }
    update(machine.compute().multiplying(rates));
  }

  /// Returns a number with six digits or more.
  private static double rounded(double value) {
    return Math.rint(1e3 * value) / 1e3;
  }

  /// Returns a multiplication of small depth, whose conversions take most of its time.
  private Case converted(DType type) {
    return new Case(
        gathered(CONVERTED_ROWS, PART_COLUMNS, CONVERTED_DEPTH, type), Overlap.unfused());
  }

  /// Takes the conversion to fp32 from the preparation of a weight, and that from fp32 from the
  /// output.
  private void conversions() {
    var compute = machine.compute();
    var widened = new TreeMap<>(compute.widened());
    var narrowed = new TreeMap<>(compute.narrowed());
    for (var type : compute.widened().keySet()) {
      var given = converted(type);
      double prepared = (double) PART_COLUMNS * CONVERTED_DEPTH;
      double wider =
          plausible(
              "conversion of " + type,
              1e9 * prepared / cases.times(given).preparingNanos(),
              compute.widened().getOrDefault(type, 0.0));
      widened.put(type, Math.rint(wider));
      if (type.isFp8()) {
        // The output is of another type.
        missing.add("conversion to " + type);
        continue;
      }
      double narrowing =
          cases.times(given).nanos(Stage.GEMM)
              - machine.gemmNanos(DType.FP32, CONVERTED_ROWS, PART_COLUMNS, CONVERTED_DEPTH)
              - 1e9 * CONVERTED_ROWS * CONVERTED_DEPTH / wider;
      double narrower =
          plausible(
              "conversion to " + type,
              1e9 * CONVERTED_ROWS * PART_COLUMNS / narrowing,
              compute.narrowed().getOrDefault(type, 0.0));
      narrowed.put(type, Math.rint(narrower));
    }
    update(compute.converting(widened, narrowed));
  }

  // Sums and copies.

  private List<Case> added() {
    var made = new ArrayList<Case>();
    for (int rows : PART_ROWS) {
      var spec = GemmSpec.gemmAllReduce(rows * group.size(), PART_COLUMNS, TINY * group.size());
      made.add(new Case(spec, Overlap.pipelined(1)));
    }
    return made;
  }

  private void sums() {
    var compute = machine.compute();
    double copied = compute.copyBytes();
    double reduced = compute.reduceBytes();
    update(
        compute.moving(
            Math.rint(plausible("memory bandwidth", copied * faster(added(), Stage.LOCAL), copied)),
            Math.rint(
                plausible(REDUCE_BANDWIDTH, reduced * faster(added(), Stage.REDUCE), reduced))));
  }

  /// Returns the simulated time of a stage of all cases together ÷ the measured one; not a number,
  /// or infinite, if it was not seen.
  private double faster(List<Case> all, Stage stage) {
    double measured = 0;
    double simulated = 0;
    for (var each : all) {
      measured += cases.times(each).nanos(stage);
      simulated += simulatedNanos(each, stage);
    }
    return simulated / measured;
  }

  private List<Case> copied(Overlap tuning) {
    var made = new ArrayList<Case>();
    for (int rows : PART_ROWS) {
      made.add(new Case(gathered(rows * group.size(), TINY, PART_COLUMNS, DType.FP32), tuning));
    }
    return made;
  }

  /// Fits lines through the times of copies of several sizes, by an engine and by a worker. On the
  /// host both are a core's, and its link is simulated.
  private void copies() {
    var links = machine.links();
    var engine = copyLine(ENGINE);
    var worker = copyLine(WORKER);
    double before = host ? links.bytesPerCore() : links.inside().bytesPerSecond();
    double rate = plausible(LINK, engine.rate(), before);
    update(
        new Links(
            host ? links.inside() : new Link(rate, Math.round(engine.fixedNanos())),
            links.between(),
            links.serial(),
            links.engines(),
            plausible(WORKER_BANDWIDTH, worker.rate(), links.bytesPerWorker()),
            host ? rate : links.bytesPerCore()),
        machine.compute(),
        machine.costs());
  }

  /// Time of a copy: fixed, and per byte.
  ///
  /// @param rate bytes per second
  private record CopyLine(double fixedNanos, double rate) {}

  private CopyLine copyLine(Overlap tuning) {
    var all = copied(tuning);
    var factors = new double[all.size()][];
    var targets = new double[all.size()];
    for (int i = 0; i < targets.length; i++) {
      double bytes = (double) PART_ROWS.get(i) * PART_COLUMNS * Float.BYTES;
      double time = cases.times(all.get(i)).nanos(Stage.COPY) / (group.size() - 1);
      // By relative errors.
      factors[i] = new double[] {1 / time, bytes / time};
      targets[i] = 1;
    }
    var fit = fitted(factors, targets);
    return new CopyLine(fit[0], Math.rint(1e9 / fit[1]));
  }

  private List<Case> besideCopies() {
    int size = sizes().others().get(sizes().others().size() / 2);
    var spec = gathered(size * group.size(), size, size, tables.getFirst());
    return SPLITS.stream().map(splits -> new Case(spec, Overlap.pipelined(splits))).toList();
  }

  /// Compares multiplications beside copies with their simulated time.
  private void contention() {
    double factor = plausible(CONTENTION, 1 / faster(besideCopies(), Stage.GEMM), 1);
    // Copies do not make computations faster: less than 1 is the error of the rates.
    update(machine.compute().contending(Math.max(1, rounded(factor))));
  }

  // Attention.

  private List<Case> attended() {
    var made = new ArrayList<Case>();
    for (int headSize : List.of(64, 128)) {
      var spec =
          AttentionSpec.of((host ? 256 : 4096) * group.size(), host ? 4 : 16, headSize)
              .dtype(host ? DType.FP32 : DType.BF16);
      made.add(new Case(spec, ContextParallel.unfused()));
      made.add(new Case(spec.causal(), ContextParallel.unfused()));
    }
    return made;
  }

  /// Scales the rates of attention besides its multiplications such that the simulated times are
  /// the measured ones.
  private void attention() {
    var before = machine.compute();
    for (int fit = 0; fit < ATTENTION_FITS; fit++) {
      var ratios =
          attended().stream()
              .mapToDouble(
                  each ->
                      simulatedNanos(each, Stage.ATTENTION)
                          / cases.times(each).nanos(Stage.ATTENTION))
              .toArray();
      double factor = Spread.quantile(ratios, 0.5);
      if (!isPlausible(machine.compute().weights() * factor, before.weights())) {
        missing.add("attention");
        update(before);
        return;
      }
      update(machine.compute().attending(factor));
    }
  }

  // Launches and fixed costs.

  /// Returns pipelines without work to speak of, whose times are launches, waits and fixed costs.
  private List<Case> tiny() {
    var type = host ? DType.FP32 : DType.BF16;
    int rows = TINY * SPLITS.getLast() * group.size();
    int depth = TINY * group.size();
    var made = new ArrayList<Case>();
    for (var spec :
        List.of(
            gathered(rows, TINY, TINY, type),
            GemmSpec.gemmReduceScatter(rows, TINY, depth).dtype(type),
            GemmSpec.gemmAllReduce(rows, TINY, depth).dtype(type))) {
      made.add(new Case(spec, Overlap.unfused(), true));
      if (group.size() > 1) {
        for (int splits : SPLITS) {
          made.add(new Case(spec, Overlap.pipelined(splits), true));
          made.add(new Case(spec, Overlap.ring(splits), true));
        }
      }
    }
    return made;
  }

  private void launchesAndFixedCosts() {
    var all = tiny();
    var ratios =
        all.stream()
            .mapToDouble(
                each ->
                    cases.times(each).enqueuingNanos()
                        / launching(each.schedule(group.size()), machine))
            .toArray();
    update(
        machine.links(),
        machine.compute(),
        machine.costs().launching(plausible("launches", Spread.quantile(ratios, 0.5), 1)));
    double shortest =
        all.stream().mapToDouble(each -> cases.times(each).lastingNanos()).min().orElseThrow();
    double[] fixed = {0, 0, 0, 0};
    for (int fit = 0; fit < COST_FITS; fit++) {
      fixed = fixedCosts(all, fixed);
    }
    if (Arrays.stream(fixed).allMatch(cost -> cost < shortest)) {
      update(machine.links(), machine.compute(), fixed(fixed));
    } else {
      missing.add("fixed costs");
    }
  }

  /// Returns the time that the costs of a machine are for launching a rank's steps.
  private double launching(Schedule schedule, Machine launched) {
    var costs = launched.costs();
    double nanos = 0;
    for (var step : schedule.steps(group.rank())) {
      nanos +=
          switch (step) {
            case Step.Copy copy -> (double) copy.moves().size() * costs.launchCopy();
            case Step.Gemm gemm ->
                (launched.compute().batched() ? 1.0 : gemm.tiles().size()) * costs.launchCompute();
            case Step.Signal _, Step.Wait _ -> (double) costs.launchSignal();
            case Step.Mark _, Step.After _ -> (double) costs.launchMark();
            default -> (double) costs.launchCompute();
          };
    }
    return nanos;
  }

  /// Returns the costs with the given times of an event, a signal, the begin of a step, and the end
  /// of an iteration.
  private Costs fixed(double... nanos) {
    return machine
        .costs()
        .fixed(
            Math.round(nanos[0]), Math.round(nanos[1]), Math.round(nanos[2]), Math.round(nanos[3]));
  }

  /// Improves the costs such that simulated times are the measured ones, by relative errors. A
  /// simulated time is taken to be linear in each cost.
  private double[] fixedCosts(List<Case> all, double... before) {
    var columns = new double[all.size()][];
    var targets = new double[all.size()];
    for (int i = 0; i < targets.length; i++) {
      var schedule = all.get(i).schedule(group.size());
      double simulated = nanos(schedule, before);
      double measured = cases.times(all.get(i)).lastingNanos();
      columns[i] = new double[before.length];
      targets[i] = measured - simulated;
      for (int cost = 0; cost < before.length; cost++) {
        var varied = before.clone();
        varied[cost] += VARIED_NANOS;
        double effect = (nanos(schedule, varied) - simulated) / VARIED_NANOS;
        columns[i][cost] = effect / measured;
        targets[i] += effect * before[cost];
      }
      targets[i] /= measured;
    }
    return fitted(columns, targets);
  }

  private double nanos(Schedule schedule, double... fixed) {
    var varied =
        new Machine(
            machine.name(),
            machine.calibration(),
            machine.ranksPerHost(),
            machine.links(),
            machine.compute(),
            fixed(fixed));
    return schedule.simulate(varied, SIMULATED).summary().medianNanos();
  }

  /// Returns the numbers, 0 or more, whose sums with the factors of each row are nearest to the
  /// targets, by least squares.
  private static double[] fitted(double[][] factors, double... targets) {
    var numbers = new double[factors[0].length];
    for (int round = 0; round < FIT_ROUNDS; round++) {
      for (int number = 0; number < numbers.length; number++) {
        double product = 0;
        double square = 0;
        for (int row = 0; row < targets.length; row++) {
          double rest = targets[row];
          for (int other = 0; other < numbers.length; other++) {
            rest -= other == number ? 0 : factors[row][other] * numbers[other];
          }
          product += rest * factors[row][number];
          square += factors[row][number] * factors[row][number];
        }
        numbers[number] = square == 0 ? 0 : Math.max(0, product / square);
      }
    }
    return numbers;
  }
}
