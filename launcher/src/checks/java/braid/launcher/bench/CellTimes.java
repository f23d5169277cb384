package braid.launcher.bench;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// Times of cells of each kind, in milliseconds.
final class CellTimes {
  private final Map<CellRounds.CellKind, List<Double>> millis =
      new EnumMap<>(CellRounds.CellKind.class);

  void add(CellRounds.CellKind kind, double took) {
    millis.computeIfAbsent(kind, k -> new ArrayList<>()).add(took);
  }

  List<Double> of(CellRounds.CellKind kind) {
    return millis.getOrDefault(kind, List.of());
  }
}
