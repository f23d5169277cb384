package braid.launcher.cli.calibrate;

import braid.model.DType;
import braid.schedule.simulation.Calibration;
import braid.schedule.simulation.GemmRates;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/// Lines on what a calibration measured: a name and its value.
final class CalibratedTable {
  private static final int NAME_COLUMNS = 30;

  /// Settings that are measured, besides the rates of multiplications and of attention.
  private static final Pattern MEASURED =
      Pattern.compile(
          "(conversion .*|memory bandwidth|reduce bandwidth|copy bandwidth of a core|link inside a host"
              + "|worker bandwidth|computation beside copies|launch of .*|synchronize|signal inside a host|event)"
              + " = (.*)");

  private CalibratedTable() {}

  static String of(Machine machine) {
    var lines = new ArrayList<String>();
    lines.add(machine.title());
    var missing = machine.calibration().map(Calibration::missing).orElse(List.of());
    rates(lines, "GEMM", machine.compute().gemm());
    rates(lines, "attention", machine.compute().attention());
    for (var line : machine.toString().lines().toList()) {
      var setting = MEASURED.matcher(line);
      if (setting.matches() && !missing.contains(setting.group(1))) {
        row(lines, setting.group(1), setting.group(2));
      }
    }
    row(lines, "not measured here", missing.isEmpty() ? "nothing" : String.join(", ", missing));
    return String.join("\n", lines) + "\n";
  }

  /// Adds the rates of the smallest and of the largest shape of each type.
  private static void rates(List<String> lines, String name, Map<DType, GemmRates> all) {
    all.forEach(
        (type, rates) ->
            row(
                lines,
                name + " " + type,
                String.format(
                    Locale.ROOT,
                    "%s, %s",
                    rate(
                        rates,
                        rates.rows().getFirst(),
                        rates.columns().getFirst(),
                        rates.depths().getFirst()),
                    rate(
                        rates,
                        rates.rows().getLast(),
                        rates.columns().getLast(),
                        rates.depths().getLast()))));
  }

  private static String rate(GemmRates rates, int m, int n, int k) {
    return String.format(
        Locale.ROOT, "%d×%d×%d: %.1f GFLOPS", m, n, k, 2.0 * m * n * k / rates.nanos(m, n, k));
  }

  private static void row(List<String> lines, String name, String value) {
    lines.add("  " + name + " ".repeat(Math.max(1, NAME_COLUMNS - name.length())) + value);
  }
}
