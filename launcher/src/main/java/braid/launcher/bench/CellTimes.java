package braid.launcher.bench;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// What cells of each kind took, in milliseconds.
final class CellTimes {
  private final Map<CellRounds.Kind, List<Double>> millis = new EnumMap<>(CellRounds.Kind.class);

  void add(CellRounds.Kind kind, double took) {
    millis.computeIfAbsent(kind, k -> new ArrayList<>()).add(took);
  }

  List<Double> of(CellRounds.Kind kind) {
    return millis.getOrDefault(kind, List.of());
  }
}
