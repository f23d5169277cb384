package braid.internal.report.value;

import braid.model.Overlap;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;

/// Configurations in a line of text, without Tablesaw, which ranks must not load.
public final class ConfigurationLabel {
  private ConfigurationLabel() {}

  /// Returns all columns: "m=8192 n=28672 splits=4".
  public static String of(SequencedMap<String, String> configuration) {
    return configuration.entrySet().stream()
        .map(e -> e.getKey() + "=" + e.getValue())
        .collect(Collectors.joining(" "));
  }

  /// Returns the settings of a tuning that `varying` names, or the whole tuning if it has no column
  /// of them.
  public static String distinguishing(Overlap how, Set<String> varying) {
    var settings = how.columns();
    settings.keySet().retainAll(varying);
    return settings.isEmpty() ? how.toString() : of(settings);
  }
}
