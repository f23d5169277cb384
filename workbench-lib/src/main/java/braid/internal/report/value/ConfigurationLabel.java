package braid.internal.report.value;

import braid.model.Overlap;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;

/// Configurations in a line of text. Ranks name configurations too, and must not load Tablesaw for
/// it.
public final class ConfigurationLabel {
  private ConfigurationLabel() {}

  /// All of it: "m=8192 n=28672 splits=4".
  public static String of(SequencedMap<String, String> configuration) {
    return configuration.entrySet().stream()
        .map(e -> e.getKey() + "=" + e.getValue())
        .collect(Collectors.joining(" "));
  }

  /// What distinguishes that tuning from others: of its settings those that `varying` names, or all
  /// where none of these is worth a column.
  public static String distinguishing(Overlap how, Set<String> varying) {
    var settings = how.columns();
    settings.keySet().retainAll(varying);
    return settings.isEmpty() ? how.toString() : of(settings);
  }
}
