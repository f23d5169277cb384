package braid.launcher.bench;

import braid.bench.MethodTimes;
import braid.launcher.cell.CellOutput;
import braid.model.MimeBundle;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/// Milliseconds by workload and form, a value per round, read from lines `bench TAB workload TAB
/// form TAB milliseconds`. Other output is forwarded.
final class GpuTimes implements CellOutput {
  private static final int FIELDS = 4;

  private final Map<String, Map<String, List<Double>>> times = new LinkedHashMap<>();
  private final Consumer<String> other;
  private final StringBuilder line = new StringBuilder();

  GpuTimes(Consumer<String> other) {
    this.other = other;
  }

  /// Returns the times of a workload's forms, in the order of their first line.
  synchronized Map<String, List<Double>> of(String workload) {
    return times.getOrDefault(workload, Map.of());
  }

  /// Reads a line.
  synchronized void read(String text) {
    var fields = text.split("\t", -1);
    if (fields.length == FIELDS && fields[0].equals(MethodTimes.MARK)) {
      times
          .computeIfAbsent(fields[1], _ -> new LinkedHashMap<>())
          .computeIfAbsent(fields[2], _ -> new ArrayList<>())
          .add(Double.parseDouble(fields[3]));
    } else if (!text.isBlank()) {
      other.accept(text);
    }
  }

  @Override
  public synchronized void stdout(String text) {
    line.append(text);
    for (int end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
      read(line.substring(0, end));
      line.delete(0, end + 1);
    }
  }

  @Override
  public void stderr(String text) {
    other.accept(text.stripTrailing());
  }

  /// Forwards displays without a name. Named ones are progress bars.
  @Override
  public void display(MimeBundle bundle, String displayId) {
    if (displayId.isEmpty()) {
      other.accept(bundle.text());
    }
  }
}
