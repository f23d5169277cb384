package braid;

import braid.CalibrationCases.Case;
import braid.CalibrationCases.Part;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Transport;
import braid.schedule.simulation.GemmRates;
import braid.schedule.simulation.Machine;
import java.math.BigDecimal;
import java.math.MathContext;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.DoubleFunction;
import java.util.stream.Stream;

/// Numbers of a machine besides the rates of multiplications and attention. Each is chosen such
/// that the simulated time of one part of some pipelines is the measured one.
///
/// @param cases measured pipelines
record CalibrationNumbers(CalibrationShapes shapes, CalibrationCases cases) {
  static final String LINK = "link inside a host";

  private static final int CONVERTED_COLUMNS = 1024;

  /// Timed iterations of pipelines with little work, and of others.
  private static final int MANY_RUNS = 15;

  private static final int FEW_RUNS = 5;
  private static final int CONVERTED_ROWS = 256;
  private static final int CONVERTED_DEPTH = 64;
  private static final List<Integer> SPLITS = List.of(1, 4, 8);

  /// Largest change of a number by the measurement; what changes more is noise. An unknown GPU may
  /// have links of a twentieth of the nearest built-in machine's.
  static final double MOST_CHANGE = 30;

  private static final double MOST_COST_NANOS = 1e8;

  /// Halvings of the range of a number: it is then known to 0.01%.
  private static final int HALVINGS = 16;

  private static final MathContext DIGITS = new MathContext(4);
  private static final Overlap ENGINE = Overlap.ring(1);
  private static final Overlap WORKER = Overlap.ring(1).over(Transport.WORKERS).workers(1);

  interface Change {
    Machine of(Machine machine, double value);
  }

  /// A number of the machine, and the part of pipelines that shows it.
  ///
  /// @param names names of what is missing if it is not measured
  /// @param before its value before the measurement
  /// @param least its least value
  /// @param most its largest value
  /// @param change returns a machine with another value
  record Quantity(
      List<String> names,
      double before,
      double least,
      double most,
      Change change,
      List<Case> cases,
      Part part) {}

  /// Returns the numbers of a machine, in the order in which they are measured.
  List<Quantity> quantities(Machine machine) {
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
    if (shapes.ranks() > 1) {
      all.add(bandwidth("memory bandwidth", compute.copyBytes(), added(), Part.COPYING_LOCALLY));
      all.add(bandwidth("reduce bandwidth", compute.reduceBytes(), added(), Part.REDUCING));
      if (shapes.host()) {
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
                copied(ENGINE),
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
              setting("computation beside copies", value -> Double.toString(digits(value))),
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
            (given, factor) -> {
              var settings = new LinkedHashMap<String, String>();
              launched.forEach((name, nanos) -> settings.put(name, duration(nanos * factor)));
              return given.with(settings);
            },
            tiny(Overlap.pipelined(SPLITS.getLast())),
            Part.ENQUEUING));
    all.add(cost("synchronize", (double) costs.synchronize(), tiny(Overlap.unfused())));
    // On GPUs an eager iteration takes longer than its work, for reasons that are not in the model:
    // signals and events would get 10 times their costs.
    if (shapes.host() && shapes.ranks() > 1) {
      all.add(cost("signal inside a host", (double) costs.signalInside(), tiny(ENGINE)));
      all.add(cost("event", (double) costs.event(), tiny(Overlap.pipelined(SPLITS.getLast()))));
    }
    if (shapes.host() && shapes.ranks() > 1) {
      all.add(
          new Quantity(
              List.of("multiplications beside other work"),
              1,
              0,
              MOST_CHANGE,
              CalibrationNumbers::multiplying,
              whole(true),
              Part.ITERATION));
      all.add(bandwidth("reduce bandwidth", compute.reduceBytes(), whole(false), Part.ITERATION));
    }
    return all;
  }

  /// Returns a machine whose rates of multiplications are multiplied by a factor.
  private static Machine multiplying(Machine machine, double factor) {
    var gemm = new TreeMap<DType, GemmRates>();
    machine.compute().gemm().forEach((type, rates) -> gemm.put(type, rates.times(factor)));
    return machine.withRates(gemm, machine.compute().attention());
  }

  /// Returns pipelines of the host that are measured as a whole. They take 3 to 8% longer than
  /// their parts together.
  private List<Case> whole(boolean gathers) {
    int size = 1016;
    var specs =
        gathers
            ? List.of(
                shapes.gathered(2048, 632, size, DType.FP32),
                shapes.gathered(1024, 888, 1400, DType.FP32))
            : List.of(
                GemmSpec.gemmReduceScatter(2048, size, 440 * shapes.ranks()),
                GemmSpec.gemmAllReduce(2048, 888, 440 * shapes.ranks()),
                GemmSpec.gemmAllReduce(1024, 1400, 632 * shapes.ranks()));
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
        List.of(name), before, 0, Double.POSITIVE_INFINITY, setting(name, text), cases, part);
  }

  private static Change setting(String name, DoubleFunction<String> text) {
    return (machine, value) -> machine.with(Map.of(name, text.apply(value)));
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
        setting(name, CalibrationNumbers::duration),
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
        new Case(
            shapes.gathered(CONVERTED_ROWS, CONVERTED_COLUMNS, CONVERTED_DEPTH, type),
            Overlap.unfused());
    return quantity(
        "conversion %s %s".formatted(direction, type),
        before,
        value -> Double.toString(digits(value)),
        part == Part.MULTIPLYING && type.isFp8() ? List.of() : List.of(given),
        part);
  }

  private List<Case> added() {
    return parts(
        (rows, columns) ->
            new Case(
                GemmSpec.gemmAllReduce(rows, columns, 16 * shapes.ranks()), Overlap.pipelined(1)));
  }

  private List<Case> copied(Overlap tuning) {
    return parts(
        (rows, columns) -> new Case(shapes.gathered(rows, 16, columns, DType.FP32), tuning));
  }

  /// Returns a case for each size of a part, by the rows of all parts together and the columns.
  private List<Case> parts(BiFunction<Integer, Integer, Case> made) {
    return shapes.partRows().stream()
        .map(rows -> made.apply(rows * shapes.ranks(), shapes.partColumns()))
        .toList();
  }

  private List<Case> besideCopies() {
    var type = shapes.host() ? DType.FP32 : DType.BF16;
    int size = shapes.sizes(type).others().get(shapes.sizes(type).others().size() / 2);
    var spec = shapes.gathered(size * shapes.ranks(), size, size, type);
    return SPLITS.stream().map(splits -> new Case(spec, Overlap.pipelined(splits))).toList();
  }

  /// Returns pipelines with little work, whose times are mostly launches, waits and fixed costs.
  private List<Case> tiny(Overlap tuning) {
    var type = shapes.host() ? DType.FP32 : DType.BF16;
    int rows = shapes.sizes(type).rows().getFirst() * SPLITS.getLast() * shapes.ranks();
    int size = shapes.sizes(type).others().getFirst();
    return List.of(
        new Case(shapes.gathered(rows, size, size, type), tuning, MANY_RUNS),
        new Case(
            GemmSpec.gemmReduceScatter(rows, size, size * shapes.ranks()).dtype(type),
            tuning,
            MANY_RUNS));
  }

  /// Returns the machine with a number such that the simulated times are the measured ones, by
  /// halving the range of its logarithm; empty if no plausible value does it.
  Optional<Machine> fitted(Machine machine, Quantity quantity) {
    double low = Math.max(quantity.least(), quantity.before() / MOST_CHANGE);
    double high = Math.min(quantity.most(), quantity.before() * MOST_CHANGE);
    double lowError = error(machine, quantity, low);
    double highError = error(machine, quantity, high);
    if (low == quantity.least() && lowError > 0 && highError > lowError) {
      return Optional.of(quantity.change().of(machine, low));
    }
    if (!(lowError * highError < 0)) {
      return Optional.empty();
    }
    for (int halving = 0; halving < HALVINGS; halving++) {
      double middle = Math.sqrt(low * high);
      if (error(machine, quantity, middle) > 0 == highError > 0) {
        high = middle;
      } else {
        low = middle;
      }
    }
    return Optional.of(quantity.change().of(machine, Math.sqrt(low * high)));
  }

  /// Returns the mean logarithm of simulated ÷ measured times; not a number if there are none.
  private double error(Machine machine, Quantity quantity, double value) {
    var changed = quantity.change().of(machine, value);
    return quantity.cases().stream()
        .mapToDouble(
            each ->
                Math.log(
                    cases.simulated(changed, each, quantity.part())
                        / cases.nanos(each, quantity.part())))
        .average()
        .orElse(Double.NaN);
  }
}
