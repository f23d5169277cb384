package braid.evidence;

import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Problem;
import braid.model.TokenLayout;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Limits of a measurement: the operations of a problem at the highest rate of the device, and the
/// bytes that ranks must receive at the bandwidth of the link. A shorter time is an error of the
/// measurement: work was left out, a clock is wrong, or the times are of another problem or
/// machine. Evidence names it by its [Fault] wherever it is shown or judged.
///
/// Limits are on the safe side: published rates and a tenth more, no latency, the bytes of the mean
/// rank, and only what every algorithm must do. Of chains, steps and packed attention only parts
/// are known; then there are fewer limits.
public final class SpeedLimits {
  /// Share of bytes that may be missing, such as those of an iteration that was cut off.
  private static final double MISSING = 0.01;

  private static final double NANOS_PER_SECOND = 1e9;

  /// Errors of a measurement.
  public enum Fault {
    /// More operations per second than the device can do.
    IMPOSSIBLE_RATE,
    /// More bytes per second than the link can carry.
    IMPOSSIBLE_BANDWIDTH,
    /// Fewer bytes than any algorithm can do with.
    MISSING_BYTES
  }

  /// Limits of a measurement without any.
  private static final SpeedLimits NONE = new SpeedLimits("", 0, 0, DType.FP32, Optional.empty());

  private final String work;
  private final double operations;
  private final double bytes;
  private final DType dtype;
  private final Optional<Peak> peak;

  /// @param work problem and ranks, in words
  /// @param operations of one rank in an iteration; 0 if unknown
  /// @param bytes that a rank must receive in an iteration, as the mean of all; 0 if unknown
  /// @param dtype type with the highest rate among those of the operands
  private SpeedLimits(
      String work, double operations, double bytes, DType dtype, Optional<Peak> peak) {
    this.work = work;
    this.operations = operations;
    this.bytes = bytes;
    this.dtype = dtype;
    this.peak = peak;
  }

  /// Returns the limits of a problem on a machine.
  ///
  /// @param columns columns of a study's problem, or a profile's configuration
  public static SpeedLimits of(Map<String, String> columns, int ranks) {
    var peak = peak(columns, ranks);
    if (peak.isEmpty() || !Caveats.timesCount(columns)) {
      return NONE;
    }
    var words = new LinkedHashMap<>(columns);
    words.put("ranks", Integer.toString(ranks));
    var work = ConfigurationLabel.problem(words);
    try {
      return collective(work, columns, ranks, peak)
          .or(() -> problem(columns).map(each -> of(work, each, ranks, peak)))
          .orElse(NONE);
    } catch (BraidException | NumberFormatException e) {
      // Evidence of elsewhere may have other columns: nothing is known of such work.
      return NONE;
    }
  }

  private static Optional<Peak> peak(Map<String, String> columns, int ranks) {
    try {
      return Peak.of(
          columns.getOrDefault("backend", ""),
          columns.getOrDefault(Caveats.DEVICE, ""),
          columns.getOrDefault("link", "unlimited"),
          ranks);
    } catch (BraidException e) {
      return Optional.empty(); // a link of another form
    }
  }

  /// Returns the limits of an iteration that solves several problems of one type.
  ///
  /// @param work name of the problems in messages
  /// @param machine the columns `backend`, `device` and `link`
  public static SpeedLimits of(
      String work, List<? extends Problem> problems, int ranks, Map<String, String> machine) {
    var peak = peak(machine, ranks);
    var limits = problems.stream().map(each -> of(work, each, ranks, peak)).toList();
    return new SpeedLimits(
        work,
        limits.stream().mapToDouble(each -> each.operations).sum(),
        limits.stream().mapToDouble(each -> each.bytes).sum(),
        limits.getFirst().dtype,
        peak);
  }

  private static SpeedLimits of(String work, Problem problem, int ranks, Optional<Peak> peak) {
    return switch (problem) {
      case GemmSpec spec ->
          new SpeedLimits(
              work,
              spec.pattern().beside() ? spec.flops() : spec.flops() / ranks,
              received(spec, ranks),
              faster(spec.dtype(), spec.weightDtype(), peak),
              peak);
      case AttentionSpec spec ->
          new SpeedLimits(work, spec.flops() / ranks, 0, attended(spec.dtype()), peak);
      case AttentionGradientSpec spec ->
          new SpeedLimits(work, spec.flops() / ranks, 0, attended(spec.dtype()), peak);
    };
  }

  /// Attention in fp32 may use the units for tf32.
  private static DType attended(DType dtype) {
    return dtype == DType.FP32 ? DType.TF32 : dtype;
  }

  private static DType faster(DType input, DType weight, Optional<Peak> peak) {
    return peak.filter(each -> each.rate(weight) > each.rate(input)).isPresent() ? weight : input;
  }

  /// Returns the bytes that a rank must receive: of gathered rows, all but its own; of a sum,
  /// whatever the order of the additions, each rank's numbers must travel once, and the result of
  /// an all-reduce once more.
  private static double received(GemmSpec spec, int ranks) {
    double others = (ranks - 1.0) / ranks;
    double product = (double) spec.m() * spec.n() * spec.sumDtype().bytes();
    return others
        * switch (spec.pattern()) {
          case ALL_GATHER_GEMM -> (double) spec.m() * spec.k() * spec.dtype().bytes();
          case GEMM_REDUCE_SCATTER -> product;
          case GEMM_ALL_REDUCE -> 2 * product;
          case GEMM_BESIDE_ALL_GATHER -> (double) spec.besideElements() * spec.dtype().bytes();
          case GEMM_BESIDE_REDUCE_SCATTER ->
              (double) spec.besideElements() * spec.sumDtype().bytes();
        };
  }

  /// Returns the limits of a profile of standalone collectives of one kind and shape.
  private static Optional<SpeedLimits> collective(
      String work, Map<String, String> columns, int ranks, Optional<Peak> peak) {
    var shapes = columns.getOrDefault("shape", "");
    var kind =
        Arrays.stream(Collective.values())
            .filter(each -> each.toString().equals(columns.get("pattern")))
            .findFirst();
    if (kind.isEmpty() || shapes.isEmpty() || shapes.contains("+")) {
      return Optional.empty();
    }
    var dtype = DType.parse(columns.getOrDefault("dtype", ""));
    double bytes = dtype.bytes();
    for (var size : shapes.split(" to ", -1)[0].split("x", -1)) {
      bytes *= Long.parseLong(size);
    }
    double others = (ranks - 1.0) / ranks;
    double received =
        switch (kind.get()) {
          case ALL_GATHER -> ranks * others * bytes;
          case ALL_REDUCE -> 2 * others * bytes;
          case REDUCE_SCATTER, ALL_TO_ALL, BROADCAST -> others * bytes;
          case SEND, RECEIVE, BARRIER -> 0;
        };
    return Optional.of(new SpeedLimits(work, 0, received, dtype, peak));
  }

  private static Optional<Problem> problem(Map<String, String> columns) {
    var pattern = columns.getOrDefault("pattern", "");
    if (pattern.equals("attention") || pattern.equals("attention backward")) {
      return columns.containsKey("packed")
          ? Optional.empty()
          : Optional.of(
              pattern.equals("attention") ? attention(columns) : attention(columns).backward());
    }
    return Arrays.stream(Pattern.values())
        .filter(each -> each.toString().equals(pattern))
        .findFirst()
        .map(each -> gemm(each, columns));
  }

  private static GemmSpec gemm(Pattern pattern, Map<String, String> columns) {
    var dtype = columns.getOrDefault("dtype", "");
    return new GemmSpec(
        pattern,
        number(columns, "m"),
        number(columns, "n"),
        number(columns, "k"),
        Long.parseLong(columns.getOrDefault("beside", "0")),
        DType.parse(dtype),
        DType.parse(columns.getOrDefault("weight", dtype)),
        DType.parse(columns.getOrDefault("output", dtype)),
        Set.of());
  }

  private static AttentionSpec attention(Map<String, String> columns) {
    int heads = number(columns, "heads");
    var spec =
        AttentionSpec.of(number(columns, "sequence"), heads, number(columns, "head size"))
            .kvHeads(Integer.parseInt(columns.getOrDefault("kv heads", Integer.toString(heads))))
            .dtype(DType.parse(columns.getOrDefault("dtype", "")))
            .layout(TokenLayout.CONTIGUOUS)
            .keys(
                Integer.parseInt(
                    columns.getOrDefault("keys", columns.getOrDefault("sequence", ""))));
    var causal = columns.containsKey("causal") ? spec.causal() : spec;
    return columns.containsKey("window") ? causal.window(number(columns, "window")) : causal;
  }

  private static int number(Map<String, String> columns, String name) {
    return Integer.parseInt(columns.getOrDefault(name, ""));
  }

  /// Returns the error of a time: "IMPOSSIBLE_RATE: unfused, all-gather → GEMM, 8192×28672×8192
  /// bf16, 4 ranks in 100 µs is 9,621 TFLOP/s per rank, above the H200's 989"; empty if the time is
  /// possible.
  ///
  /// @param name name of the configuration; empty if the work has no other
  public Optional<String> fault(String name, double nanos) {
    return rateFault(name, nanos).or(() -> bandwidthFault(name, nanos));
  }

  /// Returns the error of a time in which a rank only computes.
  public Optional<String> rateFault(String name, double nanos) {
    double rate = operations / nanos * NANOS_PER_SECOND;
    return peak.filter(each -> rate > (1 + Peak.SLACK) * each.rate(dtype))
        .map(
            each ->
                "%s: %s in %s is %s per rank, above %s %s"
                    .formatted(
                        Fault.IMPOSSIBLE_RATE,
                        subject(name),
                        TimeScale.format(nanos),
                        flops(rate),
                        each.words(),
                        flops(each.rate(dtype))));
  }

  private Optional<String> bandwidthFault(String name, double nanos) {
    double bandwidth = bytes / nanos * NANOS_PER_SECOND;
    return peak.filter(each -> bandwidth > (1 + Peak.SLACK) * each.link())
        .map(
            each ->
                "%s: %s in %s receives %s per rank, above the link's %s"
                    .formatted(
                        Fault.IMPOSSIBLE_BANDWIDTH,
                        subject(name),
                        TimeScale.format(nanos),
                        bandwidth(bandwidth),
                        bandwidth(each.link())));
  }

  /// Returns the error of an iteration's traffic; empty if it is possible.
  ///
  /// @param moved bytes that a rank received in an iteration, as the mean of all
  Optional<String> bytesFault(String name, double moved) {
    return peak.filter(_ -> moved < (1 - MISSING) * bytes)
        .map(
            _ ->
                String.format(
                    Locale.ROOT,
                    "%s: %s moved %,.0f bytes per rank, below the %,.0f that every algorithm needs",
                    Fault.MISSING_BYTES,
                    subject(name),
                    moved,
                    bytes));
  }

  private String subject(String name) {
    return name.isEmpty() ? work : name + ", " + work;
  }

  /// Returns the errors in a few words: the first, and the number of others.
  static Optional<String> brief(List<String> faults) {
    return faults.isEmpty()
        ? Optional.empty()
        : Optional.of(
            faults.getFirst()
                + (faults.size() > 1 ? " (and %d more)".formatted(faults.size() - 1) : ""));
  }

  private static String flops(double rate) {
    return rate >= 1e12
        ? String.format(Locale.ROOT, "%,.0f TFLOP/s", rate / 1e12)
        : String.format(Locale.ROOT, "%,.0f GFLOP/s", rate / 1e9);
  }

  private static String bandwidth(double rate) {
    return rate >= 1e9
        ? String.format(Locale.ROOT, "%,.1f GB/s", rate / 1e9)
        : String.format(Locale.ROOT, "%.3g MB/s", rate / 1e6);
  }
}
