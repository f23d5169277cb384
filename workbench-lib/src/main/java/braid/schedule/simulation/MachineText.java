package braid.schedule.simulation;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.Link;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// Reads and writes machines as text: one `setting = value` per line.
final class MachineText {
  private static final String CALIBRATED = "calibrated";
  private static final String DEVICE = "calibrated on";
  private static final String VERSIONS = "calibrated with";
  private static final String RANKS = "calibrated ranks";
  private static final String MISSING = "not measured here";
  private static final String NOTHING = "nothing";
  private static final String UNLIMITED = "unlimited";
  private static final String GEMM = "gemm ";
  private static final String ATTENTION = "attention ";
  private static final String WEIGHTS = "weights";
  private static final String RESULTS = "results";
  private static final String WIDENED = "conversion of ";
  private static final String NARROWED = "conversion to ";
  private static final Pattern SHAPE = Pattern.compile("(\\w+) n(\\d{1,9}) k(\\d{1,9})");
  private static final Pattern POINT = Pattern.compile("(\\d{1,9}):([0-9.eE+-]+)");
  private static final Pattern DURATION = Pattern.compile("(\\d{1,9}(?:\\.\\d{1,6})?) *(ns|us|ms)");
  private static final double NANOS_PER_MICRO = 1e3;
  private static final double NANOS_PER_MILLI = 1e6;

  private MachineText() {}

  static String write(Machine machine) {
    var lines = new ArrayList<String>();
    var links = machine.links();
    var compute = machine.compute();
    var costs = machine.costs();
    put(lines, "name", machine.name());
    put(lines, CALIBRATED, machine.calibration().map(each -> each.time().toString()).orElse("no"));
    machine
        .calibration()
        .ifPresent(
            each -> {
              put(lines, DEVICE, each.device());
              put(lines, VERSIONS, each.versions());
              put(lines, RANKS, each.ranks());
              put(
                  lines,
                  MISSING,
                  each.missing().isEmpty() ? NOTHING : String.join(", ", each.missing()));
            });
    put(lines, "ranks per host", machine.ranksPerHost());
    put(lines, "link inside a host", links.inside());
    put(lines, "link between hosts", links.between());
    put(lines, "one copy at a time", yesNo(links.serial()));
    put(lines, "copy engines", links.engines());
    put(lines, "worker bandwidth", bandwidth(links.bytesPerWorker()));
    put(lines, "copy bandwidth of a core", bandwidth(links.bytesPerCore()));
    put(lines, "compute units", compute.units());
    put(lines, "ranks sharing the units", compute.sharers());
    put(lines, "yielding share", compute.yieldingShare());
    put(lines, "tiles are batched", yesNo(compute.batched()));
    put(lines, "memory units", compute.memoryUnits());
    put(lines, "computation beside copies", compute.besideCopies());
    put(lines, "memory bandwidth", bandwidth(compute.copyBytes()));
    put(lines, "reduce bandwidth", bandwidth(compute.reduceBytes()));
    put(lines, WEIGHTS, compute.weights());
    put(lines, RESULTS, compute.results());
    put(lines, "launch of a copy", duration(costs.launchCopy()));
    put(lines, "launch of a computation", duration(costs.launchCompute()));
    put(lines, "launch of a signal", duration(costs.launchSignal()));
    put(lines, "launch of a mark", duration(costs.launchMark()));
    put(lines, "replayed launches", costs.replayedShare());
    put(lines, "step", duration(costs.step()));
    put(lines, "signal", duration(costs.signal()));
    put(lines, "signal inside a host", duration(costs.signalInside()));
    put(lines, "signal between hosts", duration(costs.signalBetween()));
    put(lines, "event", duration(costs.event()));
    put(lines, "oversleep", duration(costs.oversleep()));
    put(lines, "synchronize", duration(costs.synchronize()));
    compute.widened().forEach((type, rate) -> put(lines, WIDENED + type, rate));
    compute.narrowed().forEach((type, rate) -> put(lines, NARROWED + type, rate));
    compute.gemm().forEach((type, rates) -> write(lines, GEMM, type, rates));
    compute.attention().forEach((type, rates) -> write(lines, ATTENTION, type, rates));
    return String.join("\n", lines) + "\n";
  }

  private static void write(List<String> lines, String prefix, DType type, GemmRates rates) {
    for (int n = 0; n < rates.columns().size(); n++) {
      for (int k = 0; k < rates.depths().size(); k++) {
        var points = new ArrayList<String>();
        for (int m = 0; m < rates.rows().size(); m++) {
          points.add(rates.rows().get(m) + ":" + number(rates.gflops(m, n, k)));
        }
        put(
            lines,
            "%s%s n%d k%d".formatted(prefix, type, rates.columns().get(n), rates.depths().get(k)),
            String.join(" ", points));
      }
    }
  }

  private static void put(List<String> lines, String setting, Object value) {
    lines.add(setting + " = " + (value instanceof Double number ? number(number) : value));
  }

  private static String yesNo(boolean value) {
    return value ? "yes" : "no";
  }

  private static String number(double value) {
    return Double.isInfinite(value)
        ? UNLIMITED
        : value == Math.rint(value) && Math.abs(value) < 1e15
            ? Long.toString((long) value)
            : Double.toString(value);
  }

  private static String bandwidth(double bytesPerSecond) {
    return new Link(bytesPerSecond, 0).toString();
  }

  private static String duration(long nanos) {
    return nanos > 0 && nanos % (long) NANOS_PER_MICRO == 0
        ? nanos / (long) NANOS_PER_MICRO + "us"
        : nanos + "ns";
  }

  static Machine with(Machine machine, Map<String, String> changed) {
    var settings = settings(write(machine));
    changed.forEach(
        (name, value) -> {
          if (settings.replace(name, value) == null) {
            throw unknown(Set.of(name));
          }
        });
    return read(settings);
  }

  static Machine parse(String text) {
    return read(settings(text));
  }

  private static Machine read(Map<String, String> settings) {
    var reader = new Reader(settings);
    var machine =
        new Machine(
            reader.take("name"),
            reader.calibration(),
            reader.count("ranks per host"),
            new Hardware.Links(
                reader.take("link inside a host", Link::parse),
                reader.take("link between hosts", Link::parse),
                reader.yes("one copy at a time"),
                reader.count("copy engines"),
                reader.bandwidth("worker bandwidth"),
                reader.bandwidth("copy bandwidth of a core")),
            new Hardware.Compute(
                reader.count("compute units"),
                reader.count("ranks sharing the units"),
                reader.number("yielding share"),
                reader.yes("tiles are batched"),
                reader.count("memory units"),
                reader.number("computation beside copies"),
                reader.bandwidth("memory bandwidth"),
                reader.bandwidth("reduce bandwidth"),
                reader.number(WEIGHTS),
                reader.number(RESULTS),
                reader.rates(GEMM),
                reader.rates(ATTENTION),
                reader.conversions(WIDENED),
                reader.conversions(NARROWED)),
            new Hardware.Costs(
                reader.nanos("launch of a copy"),
                reader.nanos("launch of a computation"),
                reader.nanos("launch of a signal"),
                reader.nanos("launch of a mark"),
                reader.number("replayed launches"),
                reader.nanos("step"),
                reader.nanos("signal"),
                reader.nanos("signal inside a host"),
                reader.nanos("signal between hosts"),
                reader.nanos("event"),
                reader.nanos("oversleep"),
                reader.nanos("synchronize")));
    reader.requireAllTaken();
    return machine;
  }

  private static Map<String, String> settings(String text) {
    var settings = new LinkedHashMap<String, String>();
    for (var line : text.lines().toList()) {
      var setting = line.strip();
      if (setting.isEmpty() || setting.startsWith("#")) {
        continue;
      }
      int equals = setting.indexOf('=');
      if (equals < 0) {
        throw new BraidException(
            "a line of a machine must be `setting = value` but was `%s`; begin comments with #"
                .formatted(setting));
      }
      var name = setting.substring(0, equals).strip();
      if (settings.put(name, setting.substring(equals + 1).strip()) != null) {
        throw new BraidException(
            "`%s` of a machine must be set once but was set twice; remove one".formatted(name));
      }
    }
    return settings;
  }

  /// Takes settings one by one; any that remain at the end are unknown.
  private record Reader(Map<String, String> settings) {
    String take(String name) {
      var value = settings.remove(name);
      if (value == null) {
        throw new BraidException(
            "a machine must set `%s` but does not; Machine.h200x8() prints all settings"
                .formatted(name));
      }
      return value;
    }

    <T> T take(String name, Function<String, T> parser) {
      return parse(name, take(name), parser);
    }

    private static <T> T parse(String name, String value, Function<String, T> parser) {
      try {
        return parser.apply(value);
      } catch (BraidException e) {
        throw new BraidException("`%s`: %s".formatted(name, e.getMessage()), e);
      }
    }

    boolean yes(String name) {
      return take(
          name,
          value ->
              switch (value) {
                case "yes" -> true;
                case "no" -> false;
                default -> throw new BraidException("must be yes or no but was " + value);
              });
    }

    Optional<Calibration> calibration() {
      var time =
          take(
              CALIBRATED,
              value -> {
                try {
                  return value.equals("no")
                      ? Optional.<Instant>empty()
                      : Optional.of(Instant.parse(value));
                } catch (DateTimeParseException e) {
                  throw new BraidException(
                      "must be no or a time but was %s; for example 2026-11-26T15:10:00Z"
                          .formatted(value),
                      e);
                }
              });
      return time.map(
          each -> {
            var missing = take(MISSING);
            return new Calibration(
                take(DEVICE),
                take(VERSIONS),
                count(RANKS),
                each,
                missing.equals(NOTHING) ? List.of() : List.of(missing.split(", *", -1)));
          });
    }

    int count(String name) {
      return take(
          name,
          value -> {
            try {
              return Integer.parseInt(value);
            } catch (NumberFormatException e) {
              throw new BraidException("must be a whole number but was %s".formatted(value), e);
            }
          });
    }

    double number(String name) {
      return take(name, MachineText::decimal);
    }

    double bandwidth(String name) {
      return take(
          name,
          value -> {
            var link = Link.parse(value);
            if (link.latencyNanos() != 0) {
              throw new BraidException(
                  "must be without a latency but was %s; for example 25GB/s".formatted(value));
            }
            return link.bytesPerSecond();
          });
    }

    long nanos(String name) {
      return take(
          name,
          value -> {
            var form = DURATION.matcher(value);
            if (!form.matches()) {
              throw new BraidException(
                  "must be a time in ns, us or ms but was %s; for example 2.5us".formatted(value));
            }
            double unit =
                switch (form.group(2)) {
                  case "us" -> NANOS_PER_MICRO;
                  case "ms" -> NANOS_PER_MILLI;
                  default -> 1;
                };
            return Math.round(Double.parseDouble(form.group(1)) * unit);
          });
    }

    TreeMap<DType, Double> conversions(String prefix) {
      var rates = new TreeMap<DType, Double>();
      for (var name : named(prefix)) {
        var type = parse(name, name.substring(prefix.length()), DType::parse);
        rates.put(type, number(name));
      }
      return rates;
    }

    private List<String> named(String prefix) {
      return settings.keySet().stream().filter(name -> name.startsWith(prefix)).toList();
    }

    TreeMap<DType, GemmRates> rates(String prefix) {
      var grids = new TreeMap<DType, Grid>();
      for (var name : named(prefix)) {
        var form = SHAPE.matcher(name.substring(prefix.length()));
        if (!form.matches()) {
          throw new BraidException(
              "rates of multiplications must be named by type, columns and depth but were `%s`; for example `%sbf16 n8192 k8192`"
                  .formatted(name, prefix));
        }
        var type = parse(name, form.group(1), DType::parse);
        var line = new TreeMap<Integer, Double>();
        for (var point : take(name).split(" +", -1)) {
          var pair = POINT.matcher(point);
          if (!pair.matches()) {
            throw new BraidException(
                "`%s` must be rows:GFLOPS, separated by spaces, but was `%s`; for example 512:640000"
                    .formatted(name, point));
          }
          var before =
              line.put(
                  Integer.parseInt(pair.group(1)),
                  parse(name, pair.group(2), MachineText::decimal));
          if (before != null) {
            throw new BraidException(
                "`%s` must contain each number of rows once but contains %s twice; remove one"
                    .formatted(name, pair.group(1)));
          }
        }
        grids
            .computeIfAbsent(type, _ -> new Grid(new TreeMap<>()))
            .lines()
            .computeIfAbsent(Integer.parseInt(form.group(2)), _ -> new TreeMap<>())
            .put(Integer.parseInt(form.group(3)), line);
      }
      var rates = new TreeMap<DType, GemmRates>();
      grids.forEach((type, grid) -> rates.put(type, grid.rates(type)));
      return rates;
    }

    void requireAllTaken() {
      if (!settings.isEmpty()) {
        throw unknown(settings.keySet());
      }
    }
  }

  private static BraidException unknown(Set<String> names) {
    return new BraidException(
        "a machine has no setting %s; Machine.h200x8() prints all settings"
            .formatted(
                names.stream().map(name -> "`" + name + "`").collect(Collectors.joining(", "))));
  }

  private static double decimal(String value) {
    if (value.equals(UNLIMITED)) {
      return Double.POSITIVE_INFINITY;
    }
    try {
      return Double.parseDouble(value);
    } catch (NumberFormatException e) {
      throw new BraidException("must be a number but was %s".formatted(value), e);
    }
  }

  /// Rates by columns, depth and rows.
  private record Grid(TreeMap<Integer, TreeMap<Integer, TreeMap<Integer, Double>>> lines) {
    GemmRates rates(DType type) {
      var depths = new TreeSet<>(lines.firstEntry().getValue().keySet());
      var rows = new TreeSet<>(lines.firstEntry().getValue().firstEntry().getValue().keySet());
      var gflops = new ArrayList<Double>();
      lines.forEach(
          (n, byDepth) ->
              byDepth.forEach(
                  (k, byRows) -> {
                    if (!byDepth.keySet().equals(depths) || !byRows.keySet().equals(rows)) {
                      throw new BraidException(
                          "rates of %s must be of the same rows and depths for all columns but those of n%d k%d are not; complete them"
                              .formatted(type, n, k));
                    }
                    gflops.addAll(byRows.values());
                  }));
      return new GemmRates(
          List.copyOf(rows), List.copyOf(lines.keySet()), List.copyOf(depths), gflops);
    }
  }
}
