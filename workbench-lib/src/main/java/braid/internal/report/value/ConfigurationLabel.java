package braid.internal.report.value;

import braid.model.Configuration;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;

/// Configurations in a line of text, without Tablesaw, which ranks must not load.
public final class ConfigurationLabel {
  private static final Map<String, String> PATTERNS =
      Map.of(
          "all-gather-gemm", "all-gather → GEMM",
          "gemm-reduce-scatter", "GEMM → reduce-scatter",
          "gemm-all-reduce", "GEMM → all-reduce",
          "gemm-beside-all-gather", "GEMM beside all-gather",
          "gemm-beside-reduce-scatter", "GEMM beside reduce-scatter");
  private static final List<String> SIZES = List.of("m", "n", "k");
  private static final Set<String> COUNTED = Set.of("splits", "streams", "workers", "ranks");

  private ConfigurationLabel() {}

  /// Returns all columns of a configuration in words: "all-gather → GEMM, 3840×2304×640 fp32,
  /// pipelined, 4 splits, 1 stream, over copy_engine".
  public static String of(SequencedMap<String, String> configuration) {
    var columns = new LinkedHashMap<>(configuration);
    var words = new ArrayList<String>();
    var pattern = columns.remove("pattern");
    if (pattern != null) {
      words.add(PATTERNS.getOrDefault(pattern, pattern));
    }
    if (columns.keySet().containsAll(SIZES)) {
      var sizes = SIZES.stream().map(columns::remove).collect(Collectors.joining("×"));
      var dtype = columns.remove("dtype");
      words.add(dtype == null ? sizes : sizes + " " + dtype);
    }
    columns.forEach((name, value) -> words.add(words(name, value)));
    return String.join(", ", words);
  }

  private static String words(String name, String value) {
    if (COUNTED.contains(name)) {
      return value + " " + (value.equals("1") ? name.substring(0, name.length() - 1) : name);
    }
    return switch (name) {
      case "method", "dtype", "steps" -> value;
      case "transport" -> "over " + value;
      default -> name + " " + value;
    };
  }

  /// Returns the name of a reference: "unfused", or the name of a step.
  public static String reference(Configuration how) {
    return how instanceof Overlap overlap ? overlap.method().toString() : how.toString();
  }

  /// Returns columns as in a table: "splits=4 streams=2".
  public static String keyed(SequencedMap<String, String> columns) {
    return columns.entrySet().stream()
        .map(e -> e.getKey() + "=" + e.getValue())
        .collect(Collectors.joining(" "));
  }

  /// Returns the settings of a tuning that `varying` names, or the whole tuning if it has no column
  /// of them; of a step, its name.
  public static String distinguishing(Configuration how, Set<String> varying) {
    if (how instanceof Configuration.Named named) {
      return named.name();
    }
    var settings = how.columns();
    settings.keySet().retainAll(varying);
    return settings.isEmpty() ? how.toString() : keyed(settings);
  }
}
