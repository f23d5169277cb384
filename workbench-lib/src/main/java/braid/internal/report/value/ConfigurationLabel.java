package braid.internal.report.value;

import braid.model.Configuration;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Configurations in words, without Tablesaw, which ranks must not load.
public final class ConfigurationLabel {
  private static final Map<String, String> PATTERNS =
      Map.of(
          "all-gather-gemm", "all-gather → GEMM",
          "gemm-reduce-scatter", "GEMM → reduce-scatter",
          "gemm-all-reduce", "GEMM → all-reduce",
          "gemm-beside-all-gather", "GEMM beside all-gather",
          "gemm-beside-reduce-scatter", "GEMM beside reduce-scatter");
  private static final List<String> SIZES = List.of("m", "n", "k");
  private static final Set<String> COUNTED =
      Set.of("splits", "streams", "workers", "ranks", "heads", Caveats.HOSTS);

  /// Columns that tunings can have, and those that describe the machine; all others describe the
  /// problem.
  private static final Set<String> TUNING =
      Set.of(
          "method",
          "splits",
          "streams",
          "transport",
          "boundaries",
          "order",
          "workers",
          "priority",
          "replayed",
          "output in",
          "ulysses ranks",
          "exchange");

  private static final Set<String> MACHINE =
      Set.of("backend", "link", "link between hosts", "memory", "machine", "calibrated");

  private static final Set<String> NEVER_SPLIT = Set.of("unfused", "bulk");

  /// Number of settings up to which defaults are written too.
  private static final int MOST_EXPLICIT = 2;

  private ConfigurationLabel() {}

  /// Returns a configuration in words, without default settings: "all-gather → GEMM, 3840×2304×640
  /// fp32, 4 ranks: pipelined, 4 splits; host backend, link 250 MB/s and 20 µs, native memory". A
  /// note that the times are no evidence comes first.
  public static String of(SequencedMap<String, String> configuration) {
    return Stream.of(
            configuration.getOrDefault(Caveats.COLUMN, ""),
            brief(configuration),
            String.join(", ", words(configuration, MACHINE)))
        .filter(part -> !part.isEmpty())
        .collect(Collectors.joining("; "));
  }

  /// Returns problem and tuning in words: "all-gather → GEMM, 3840×2304×640 fp32, 4 ranks:
  /// pipelined, 4 splits".
  public static String brief(SequencedMap<String, String> configuration) {
    var problem = problem(configuration);
    var tuning = String.join(", ", words(withoutDefaults(configuration), TUNING));
    return problem + (problem.isEmpty() || tuning.isEmpty() ? "" : ": ") + tuning;
  }

  /// Returns the problem in words: "all-gather → GEMM, 3840×2304×640 fp32, 4 ranks, 2 hosts".
  public static String problem(SequencedMap<String, String> configuration) {
    var columns = new LinkedHashMap<>(configuration);
    columns.keySet().removeAll(TUNING);
    columns.keySet().removeAll(MACHINE);
    columns.keySet().removeAll(Set.of(Caveats.COLUMN, Caveats.DEVICE));
    var words = new ArrayList<String>();
    var pattern = columns.remove("pattern");
    if (pattern != null) {
      words.add(pattern(pattern));
    }
    if (columns.keySet().containsAll(SIZES)) {
      var sizes = String.join("×", SIZES.stream().map(columns::remove).toList());
      var dtype = columns.remove("dtype");
      words.add(dtype == null ? sizes : sizes + " " + dtype);
    }
    if (columns.containsKey("shape") && columns.containsKey("dtype")) {
      words.add(columns.remove("shape") + " " + columns.remove("dtype"));
    }
    var ranks = columns.remove("ranks");
    var hosts = columns.remove(Caveats.HOSTS);
    columns.forEach((name, value) -> words.add(words(name, value)));
    if (ranks != null) {
      words.add(words("ranks", ranks));
    }
    if (hosts != null) {
      words.add(words(Caveats.HOSTS, hosts));
    }
    return String.join(", ", words);
  }

  /// Returns the name of a reference: "unfused", or the name of a step.
  public static String reference(Configuration configuration) {
    return configuration instanceof Overlap overlap
        ? overlap.method().toString()
        : configuration.toString();
  }

  /// Returns a pattern in words: "all-gather → GEMM".
  public static String pattern(String name) {
    return PATTERNS.getOrDefault(name, name);
  }

  /// Returns the settings in words: "4 splits, 2 streams".
  public static String settings(SequencedMap<String, String> columns) {
    return String.join(", ", words(columns, columns.sequencedKeySet()));
  }

  /// Returns the settings of a tuning that `varying` names, or the whole tuning if it has no column
  /// of them; of a step, its name.
  public static String distinguishing(Configuration configuration, Set<String> varying) {
    if (configuration instanceof Configuration.Named named) {
      return named.name();
    }
    var settings = configuration.columns();
    boolean isWhole = NEVER_SPLIT.contains(settings.getOrDefault("method", ""));
    settings.keySet().retainAll(varying);
    if (isWhole) {
      settings.remove("splits");
    }
    if (settings.size() > MOST_EXPLICIT) {
      settings = withoutDefaults(settings);
    }
    return settings(settings.isEmpty() ? withoutDefaults(configuration.columns()) : settings);
  }

  /// Returns a name for each configuration: the settings in which they differ, and as many columns
  /// of their problems as distinguish them. Equal configurations are numbered. One configuration
  /// has the name of its tuning, or of its problem.
  public static List<String> names(List<? extends SequencedMap<String, String>> configurations) {
    var needed = needed(configurations);
    var names = new ArrayList<String>();
    for (var configuration : configurations) {
      var columns = new LinkedHashMap<>(configuration);
      columns.keySet().retainAll(needed);
      if (NEVER_SPLIT.contains(columns.getOrDefault("method", ""))) {
        columns.remove("splits");
        columns.remove("streams");
      }
      var name = of(columns);
      names.add(name.isEmpty() ? ownName(configuration) : name);
    }
    for (int i = 0; i < names.size(); i++) {
      var name = names.get(i);
      int number = 1;
      for (int j = i + 1; j < names.size(); j++) {
        if (names.get(j).equals(name)) {
          names.set(j, name + ", run " + ++number);
        }
      }
      if (number > 1) {
        names.set(i, name + ", run 1");
      }
    }
    return names;
  }

  private static Set<String> needed(List<? extends SequencedMap<String, String>> configurations) {
    var needed = new LinkedHashSet<String>();
    for (var column : varying(configurations)) {
      if (TUNING.contains(column)) {
        needed.add(column);
      }
    }
    for (var column : varying(configurations)) {
      long before = distinct(configurations, needed);
      needed.add(column);
      if (!TUNING.contains(column) && distinct(configurations, needed) == before) {
        needed.remove(column);
      }
    }
    return needed;
  }

  private static long distinct(
      List<? extends SequencedMap<String, String>> configurations, Set<String> columns) {
    return configurations.stream()
        .map(each -> columns.stream().map(name -> each.getOrDefault(name, "")).toList())
        .distinct()
        .count();
  }

  /// Returns the name of the tuning; without one, that of the problem.
  public static String ownName(SequencedMap<String, String> configuration) {
    var tuning = String.join(", ", words(withoutDefaults(configuration), TUNING));
    return tuning.isEmpty() ? problem(configuration) : tuning;
  }

  /// Returns the columns that all configurations share.
  public static SequencedMap<String, String> common(
      List<? extends SequencedMap<String, String>> configurations) {
    var common = new LinkedHashMap<>(configurations.getFirst());
    common.keySet().removeAll(varying(configurations));
    return common;
  }

  private static SequencedSet<String> varying(
      List<? extends SequencedMap<String, String>> configurations) {
    var varying = new LinkedHashSet<String>();
    for (var configuration : configurations) {
      for (var other : configurations) {
        for (var column : configuration.entrySet()) {
          if (!column.getValue().equals(other.get(column.getKey()))) {
            varying.add(column.getKey());
          }
        }
      }
    }
    return varying;
  }

  /// Removes settings that have their default, and those that the method does not have.
  private static SequencedMap<String, String> withoutDefaults(
      SequencedMap<String, String> columns) {
    var rest = new LinkedHashMap<>(columns);
    rest.remove("streams", "1");
    rest.remove("transport", "copy_engine");
    if (NEVER_SPLIT.contains(columns.getOrDefault("method", ""))) {
      rest.remove("splits");
    }
    return rest;
  }

  private static List<String> words(SequencedMap<String, String> columns, Set<String> wanted) {
    return columns.entrySet().stream()
        .filter(column -> wanted.contains(column.getKey()))
        .map(column -> words(column.getKey(), column.getValue()))
        .toList();
  }

  private static String words(String name, String value) {
    if (COUNTED.contains(name)) {
      return value + " " + (value.equals("1") ? name.substring(0, name.length() - 1) : name);
    }
    return switch (name) {
      case "pattern" -> pattern(value);
      case "method", "dtype", "steps", "exchange", "layout", "calibrated" -> value;
      case "ulysses ranks" -> value + " ranks per all-to-all";
      case "features" -> "with " + value.replace("+", " and ");
      case "transport" -> "over " + value.replace('_', ' ');
      case "order" -> value.replace('_', ' ');
      case "replayed", "causal" -> value.equals("true") ? name : "not " + name;
      case "kv heads" -> value + " KV heads";
      case "sequence" -> value + " tokens";
      case "keys" -> value + " keys";
      case "backend" -> value + " backend";
      case "memory" -> value + " memory";
      case "link", "link between hosts" -> name + " " + link(value);
      default -> name + " " + value;
    };
  }

  /// Returns "250MB/s,20us" as "250 MB/s and 20 µs".
  private static String link(String text) {
    return text.replaceAll("(\\d)([A-Za-z])", "$1 $2").replace(" us", " µs").replace(",", " and ");
  }
}
