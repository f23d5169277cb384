package braid;

import braid.CalibrationCases.Case;
import braid.CalibrationCases.Part;
import braid.internal.report.progress.Progress;
import braid.model.AttentionSpec;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GroupAborted;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Transport;
import braid.natives.WholeFile;
import braid.schedule.simulation.Calibration;
import braid.schedule.simulation.GemmRates;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.DoubleFunction;
import java.util.stream.Stream;

/// Measures the machine that a group's ranks run on, for simulations.
///
/// ```java
/// Machine machine = Calibrator.on(world).measure();
/// ```
///
/// All ranks run pipelines together, as a user's are run. The rates of multiplications and of
/// attention by shape and type are measured directly. Every other number is chosen such that the
/// simulated time of one part of some pipelines is the measured one, see [#quantities]: a number
/// after those that its pipelines also depend on.
///
/// What a pipeline cannot show, such as a link between hosts, keeps the value of the machine that
/// the measurement begins with, and is listed as missing.
public final class Calibrator {
  private static final int ROOT = 0;
  private static final String LINK = "link inside a host";
  private static final Progress.Task CALIBRATING =
      new Progress.Task("calibrating", "calibrated", "steps");

  /// Sizes that rates are measured for.
  ///
  /// @param rows numbers of rows
  /// @param others numbers of columns, and depths
  private record Sizes(List<Integer> rows, List<Integer> others) {}

  private static final Sizes HOST_GEMM =
      new Sizes(List.of(16, 64, 256, 1024), List.of(80, 272, 528, 1040, 1552));
  private static final Sizes GPU_GEMM =
      new Sizes(
          List.of(128, 256, 512, 1024, 2048, 4096, 8192), List.of(512, 1024, 2048, 4096, 8192));

  /// Sizes of the types on GPUs that are used less.
  private static final Sizes FEWER = new Sizes(List.of(128, 512, 2048, 8192), List.of(1024, 8192));

  /// Queries of all heads, and keys.
  private static final Sizes HOST_ATTENTION = new Sizes(List.of(1024, 4096), List.of(256, 1024));

  private static final Sizes GPU_ATTENTION =
      new Sizes(List.of(8192, 32_768, 262_144), List.of(512, 2048, 8192));
  private static final List<Integer> HEAD_SIZES = List.of(64, 128);

  /// Most passes over all pipelines, far apart, because a machine may be slow for seconds.
  private static final int PASSES = 6;

  /// Time of all passes, unless one takes longer: a calibration takes a minute at most.
  private static final long MOST_PASSES_NANOS = TimeUnit.SECONDS.toNanos(40);

  /// Rows of parts that are copied and added, each of 1024 columns.
  private static final List<Integer> PART_ROWS = List.of(64, 1024, 4096);

  private static final int PART_COLUMNS = 1024;

  /// Timed iterations of pipelines with little work, and of others.
  private static final int MANY_RUNS = 15;

  private static final int FEW_RUNS = 5;
  private static final int CONVERTED_ROWS = 256;
  private static final int CONVERTED_DEPTH = 64;
  private static final List<Integer> SPLITS = List.of(1, 4, 8);

  /// Largest change of a number by the measurement; what changes more is noise. An unknown GPU may
  /// have links of a twentieth of the nearest built-in machine's.
  private static final double MOST_CHANGE = 30;

  private static final double MOST_COST_NANOS = 1e8;

  /// Halvings of the range of a number: it is then known to 0.01%.
  private static final int HALVINGS = 16;

  private static final MathContext DIGITS = new MathContext(4);
  private static final int SIMULATED = 3;
  private static final Overlap ENGINE = Overlap.ring(1);
  private static final Overlap WORKER = Overlap.ring(1).over(Transport.WORKERS).workers(1);

  /// A number of the machine, and the part of pipelines that shows it.
  ///
  /// @param names names of what is missing if it is not measured
  /// @param before its value before the measurement
  /// @param least its least value
  /// @param most its largest value
  /// @param settings settings of the machine with a value
  private record Quantity(
      List<String> names,
      double before,
      double least,
      double most,
      DoubleFunction<Map<String, String>> settings,
      List<Case> cases,
      Part part) {}

  private final ProcessGroup group;
  private final boolean host;
  private final SequencedSet<String> missing = new LinkedHashSet<>();
  private final CalibrationCases cases;
  private Machine machine = Machine.h100x8();

  /// Types that the ranks multiply, and attend with; the host does both as fp32.
  private List<DType> multiplied = List.of(DType.FP32);

  private List<DType> attended = List.of(DType.FP32);

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
    multiplied.forEach(type -> all.addAll(gemms(type)));
    attended.forEach(type -> all.addAll(attentions(type)));
    quantities().forEach(quantity -> all.addAll(quantity.cases()));
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
    machine =
        new Machine(
                machine.name(),
                machine.calibration(),
                machine.ranksPerHost(),
                machine.links(),
                machine.compute().multiplying(gemm, attention),
                machine.costs())
            // They are a part of the attention's rates.
            .with(Map.of("weights", "unlimited", "results", "unlimited"));
    quantities().forEach(quantity -> machine = fitted(quantity));
    gemm.keySet().stream()
        .filter(type -> !multiplied.contains(type) && !(host && type == DType.TF32))
        .forEach(type -> missing.add("gemm " + type));
    if (group.size() == 1) {
      missing.addAll(List.of(LINK, "reduce bandwidth", "signal inside a host", "event"));
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

  // Rates of multiplications and attention.

  private Sizes sizes(DType type) {
    return host ? HOST_GEMM : type == DType.BF16 ? GPU_GEMM : FEWER;
  }

  private GemmSpec gathered(int m, int n, int k, DType type) {
    return GemmSpec.allGatherGemm(m, n * group.size(), k).dtype(type);
  }

  /// Returns whether the GPUs multiply a type: not every GPU has fp8.
  private boolean isMultiplied(DType type) {
    int size = CONVERTED_ROWS * group.size();
    var spec = GemmSpec.allGatherGemm(size, size, size).dtype(type);
    try (var pipeline = CalibrationCases.build(group, new Case(spec, Overlap.unfused()))) {
      return pipeline.problem().dtype() == type;
    } catch (GroupAborted e) {
      throw e;
    } catch (BraidException e) {
      return false;
    }
  }

  /// Returns multiplications in the order of [GemmRates].
  private List<Case> gemms(DType type) {
    var made = new ArrayList<Case>();
    for (int n : sizes(type).others()) {
      for (int k : sizes(type).others()) {
        for (int m : sizes(type).rows()) {
          made.add(new Case(gathered(m, n, k, type), Overlap.unfused()));
        }
      }
    }
    return made;
  }

  private GemmRates rates(DType type) {
    var sizes = sizes(type);
    var gflops = new ArrayList<Double>();
    for (var each : gemms(type)) {
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
    boolean plausible = measured > before / MOST_CHANGE && measured < before * MOST_CHANGE;
    if (!plausible) {
      missing.add(name);
    }
    return Math.rint(1e3 * (plausible ? measured : before)) / 1e3;
  }

  private Sizes attentionSizes() {
    return host ? HOST_ATTENTION : GPU_ATTENTION;
  }

  /// Returns attentions in the order of [GemmRates]. Each rank attends with its share of the
  /// sequence.
  private List<Case> attentions(DType type) {
    var made = new ArrayList<Case>();
    for (int keys : attentionSizes().others()) {
      for (int headSize : HEAD_SIZES) {
        for (int queries : attentionSizes().rows()) {
          int rows = Math.ceilDiv(keys, group.size());
          var spec =
              AttentionSpec.of(rows * group.size(), Math.ceilDiv(queries, rows), headSize)
                  .dtype(type);
          made.add(new Case(spec, ContextParallel.unfused()));
        }
      }
    }
    return made;
  }

  private GemmRates attentionRates(DType type) {
    var gflops = new ArrayList<Double>();
    for (var each : attentions(type)) {
      var spec = (AttentionSpec) each.problem();
      double flops =
          4.0 * spec.sequence() / group.size() * spec.heads() * spec.sequence() * spec.headSize();
      gflops.add(
          rate(
              "attention " + spec,
              flops / cases.nanos(each, Part.ATTENDING),
              flops / simulated(machine, each, Part.ATTENDING)));
    }
    return new GemmRates(attentionSizes().rows(), attentionSizes().others(), HEAD_SIZES, gflops);
  }

  // Other numbers.

  /// Returns the other numbers, in the order in which they are measured.
  private List<Quantity> quantities() {
    var all = new ArrayList<Quantity>();
    var compute = machine.compute();
    var links = machine.links();
    var costs = machine.costs();
    compute
        .widened()
        .forEach((type, rate) -> all.add(conversion("of", type, rate, Part.PREPARING)));
    compute
        .narrowed()
        .forEach((type, rate) -> all.add(conversion("to", type, rate, Part.MULTIPLYING)));
    if (group.size() > 1) {
      all.add(bandwidth("memory bandwidth", compute.copyBytes(), added(), Part.COPYING_LOCALLY));
      all.add(bandwidth("reduce bandwidth", compute.reduceBytes(), added(), Part.REDUCING));
      if (host) {
        all.add(
            bandwidth(
                "copy bandwidth of a core", links.bytesPerCore(), copied(ENGINE), Part.COPYING));
      } else {
        var link = links.inside();
        all.add(
            quantity(
                LINK,
                link.bytesPerSecond(),
                value -> new Link(digits(value), link.latencyNanos()).toString(),
                copied(ENGINE).subList(PART_ROWS.size() - 1, PART_ROWS.size()),
                Part.COPYING));
        all.add(
            bandwidth("worker bandwidth", links.bytesPerWorker(), copied(WORKER), Part.COPYING));
      }
      all.add(
          new Quantity(
              List.of("computation beside copies"),
              1,
              1,
              MOST_CHANGE,
              value -> Map.of("computation beside copies", Double.toString(digits(value))),
              besideCopies(),
              Part.MULTIPLYING));
    }
    var launched =
        Map.of(
            "launch of a copy", costs.launchCopy(),
            "launch of a computation", costs.launchCompute(),
            "launch of a signal", costs.launchSignal(),
            "launch of a mark", costs.launchMark());
    all.add(
        new Quantity(
            List.of(
                "launch of a copy",
                "launch of a computation",
                "launch of a signal",
                "launch of a mark"),
            1,
            0,
            MOST_CHANGE,
            factor -> {
              var settings = new LinkedHashMap<String, String>();
              launched.forEach((name, nanos) -> settings.put(name, duration(nanos * factor)));
              return settings;
            },
            tiny(Overlap.pipelined(SPLITS.getLast())),
            Part.ENQUEUING));
    all.add(cost("synchronize", (double) costs.synchronize(), tiny(Overlap.unfused())));
    if (group.size() > 1) {
      all.add(cost("signal inside a host", (double) costs.signalInside(), tiny(ENGINE)));
      all.add(cost("event", (double) costs.event(), tiny(Overlap.pipelined(SPLITS.getLast()))));
    }
    if (host && group.size() > 1) {
      all.add(
          new Quantity(
              List.of("multiplications beside other work"),
              1,
              0,
              MOST_CHANGE,
              this::multiplying,
              whole(true),
              Part.ITERATION));
      all.add(bandwidth("reduce bandwidth", compute.reduceBytes(), whole(false), Part.ITERATION));
    }
    return all;
  }

  /// Returns the settings of all rates of multiplications, multiplied by a factor.
  private Map<String, String> multiplying(double factor) {
    var settings = new LinkedHashMap<String, String>();
    for (var line : machine.toString().lines().filter(each -> each.startsWith("gemm ")).toList()) {
      var points = new ArrayList<String>();
      for (var point : line.substring(line.indexOf('=') + 1).strip().split(" ", -1)) {
        int colon = point.indexOf(':');
        double rate = Double.parseDouble(point.substring(colon + 1)) * factor;
        points.add(point.substring(0, colon + 1) + digits(rate));
      }
      settings.put(line.substring(0, line.indexOf('=')).strip(), String.join(" ", points));
    }
    return settings;
  }

  /// Returns whole pipelines of the host. There they take longer than their parts, whose data stays
  /// in the caches of a core.
  private List<Case> whole(boolean gathers) {
    int size = 1016;
    var specs =
        gathers
            ? List.of(gathered(2048, 632, size, DType.FP32), gathered(1024, 888, 1400, DType.FP32))
            : List.of(
                GemmSpec.gemmReduceScatter(2048, size, 440 * group.size()),
                GemmSpec.gemmAllReduce(2048, 888, 440 * group.size()),
                GemmSpec.gemmAllReduce(1024, 1400, 632 * group.size()));
    return specs.stream()
        .flatMap(
            spec ->
                Stream.of(Overlap.unfused(), Overlap.direct(2), Overlap.pipelined(4))
                    .map(tuning -> new Case(spec, tuning, FEW_RUNS)))
        .toList();
  }

  private static Quantity quantity(
      String name, double before, DoubleFunction<String> text, List<Case> cases, Part part) {
    return new Quantity(
        List.of(name),
        before,
        0,
        Double.POSITIVE_INFINITY,
        value -> Map.of(name, text.apply(value)),
        cases,
        part);
  }

  private static Quantity bandwidth(String name, double before, List<Case> cases, Part part) {
    return quantity(name, before, value -> new Link(digits(value), 0).toString(), cases, part);
  }

  private static Quantity cost(String name, double before, List<Case> cases) {
    return new Quantity(
        List.of(name),
        before,
        0,
        MOST_COST_NANOS,
        value -> Map.of(name, duration(value)),
        cases,
        Part.ITERATION);
  }

  /// Returns a number with the digits that a measurement has.
  private static double digits(double value) {
    return BigDecimal.valueOf(value).round(DIGITS).doubleValue();
  }

  private static String duration(double nanos) {
    return Math.round(nanos) + "ns";
  }

  /// Returns a conversion, shown by a multiplication of so small a depth that conversions take most
  /// of its time. The output of fp8 is of another type.
  private Quantity conversion(String direction, DType type, double before, Part part) {
    var given =
        new Case(gathered(CONVERTED_ROWS, PART_COLUMNS, CONVERTED_DEPTH, type), Overlap.unfused());
    return quantity(
        "conversion %s %s".formatted(direction, type),
        before,
        value -> Double.toString(digits(value)),
        part == Part.MULTIPLYING && type.isFp8() ? List.of() : List.of(given),
        part);
  }

  private List<Case> added() {
    return PART_ROWS.stream()
        .map(
            rows ->
                new Case(
                    GemmSpec.gemmAllReduce(rows * group.size(), PART_COLUMNS, 16 * group.size()),
                    Overlap.pipelined(1)))
        .toList();
  }

  private List<Case> copied(Overlap tuning) {
    return PART_ROWS.stream()
        .map(rows -> new Case(gathered(rows * group.size(), 16, PART_COLUMNS, DType.FP32), tuning))
        .toList();
  }

  private List<Case> besideCopies() {
    var type = host ? DType.FP32 : DType.BF16;
    int size = sizes(type).others().get(sizes(type).others().size() / 2);
    var spec = gathered(size * group.size(), size, size, type);
    return SPLITS.stream().map(splits -> new Case(spec, Overlap.pipelined(splits))).toList();
  }

  /// Returns pipelines with little work, whose times are mostly launches, waits and fixed costs.
  private List<Case> tiny(Overlap tuning) {
    var type = host ? DType.FP32 : DType.BF16;
    int rows = sizes(type).rows().getFirst() * SPLITS.getLast() * group.size();
    int size = sizes(type).others().getFirst();
    return List.of(
        new Case(gathered(rows, size, size, type), tuning, MANY_RUNS),
        new Case(
            GemmSpec.gemmReduceScatter(rows, size, size * group.size()).dtype(type),
            tuning,
            MANY_RUNS));
  }

  /// Returns the machine with a number such that the simulated times are the measured ones, by
  /// halving the range of its logarithm; and the same machine, with the number missing, if no
  /// plausible value does it.
  private Machine fitted(Quantity quantity) {
    double low = Math.max(quantity.least(), quantity.before() / MOST_CHANGE);
    double high = Math.min(quantity.most(), quantity.before() * MOST_CHANGE);
    double lowError = error(quantity, low);
    double highError = error(quantity, high);
    if (low == quantity.least() && lowError > 0 && highError > lowError) {
      return machine.with(quantity.settings().apply(low));
    }
    if (!(lowError * highError < 0)) {
      missing.addAll(quantity.names());
      return machine;
    }
    for (int halving = 0; halving < HALVINGS; halving++) {
      double middle = Math.sqrt(low * high);
      if (error(quantity, middle) > 0 == highError > 0) {
        high = middle;
      } else {
        low = middle;
      }
    }
    return machine.with(quantity.settings().apply(Math.sqrt(low * high)));
  }

  /// Returns the mean logarithm of simulated ÷ measured times; not a number if there are none.
  private double error(Quantity quantity, double value) {
    var changed = machine.with(quantity.settings().apply(value));
    return quantity.cases().stream()
        .mapToDouble(
            each ->
                Math.log(
                    simulated(changed, each, quantity.part()) / cases.nanos(each, quantity.part())))
        .average()
        .orElse(Double.NaN);
  }

  /// Returns the simulated time of a part of an iteration on rank 0.
  private double simulated(Machine described, Case given, Part part) {
    var schedule = given.schedule(group.size());
    return switch (part) {
      case ENQUEUING -> (double) described.launchNanos(schedule, ROOT);
      case ITERATION -> schedule.simulate(described, SIMULATED).summary().medianNanos();
      default -> (double) part.nanos(schedule.simulate(described, 1).profiles().getFirst().spans());
    };
  }
}
