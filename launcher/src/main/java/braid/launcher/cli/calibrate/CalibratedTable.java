package braid.launcher.cli.calibrate;

import braid.schedule.simulation.Calibration;
import braid.schedule.simulation.GemmRates;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Lines on what a calibration measured: a name and its value.
final class CalibratedTable {
  private static final int NAME_COLUMNS = 30;

  private CalibratedTable() {}

  static String of(Machine machine) {
    var lines = new ArrayList<String>();
    lines.add(machine.title());
    var compute = machine.compute();
    var costs = machine.costs();
    var links = machine.links();
    compute.gemm().forEach((type, rates) -> gemm(lines, "GEMM " + type, rates));
    compute.attention().forEach((type, rates) -> gemm(lines, "attention tile " + type, rates));
    row(lines, "attention", String.format(Locale.ROOT, "%.1f M scores/s", compute.weights() / 1e6));
    row(lines, "sums", String.format(Locale.ROOT, "%.1f GB/s", compute.reduceBytes() / 1e9));
    row(lines, "local copies", String.format(Locale.ROOT, "%.1f GB/s", compute.copyBytes() / 1e9));
    row(
        lines,
        "copies by a core",
        String.format(Locale.ROOT, "%.1f GB/s", links.bytesPerCore() / 1e9));
    row(
        lines,
        "copies by a worker",
        String.format(Locale.ROOT, "%.1f GB/s", links.bytesPerWorker() / 1e9));
    row(lines, "link inside the host", String.format(Locale.ROOT, "%s", links.inside()));
    row(
        lines,
        "computation beside copies",
        String.format(Locale.ROOT, "%.2f × alone", compute.besideCopies()));
    compute
        .widened()
        .forEach(
            (type, rate) ->
                row(lines, type + " to fp32", String.format(Locale.ROOT, "%.0f M/s", rate / 1e6)));
    compute
        .narrowed()
        .forEach(
            (type, rate) ->
                row(lines, "fp32 to " + type, String.format(Locale.ROOT, "%.0f M/s", rate / 1e6)));
    row(
        lines,
        "launch of a computation",
        String.format(Locale.ROOT, "%.1f µs", costs.launchCompute() / 1e3));
    row(lines, "launch of a copy", String.format(Locale.ROOT, "%.1f µs", costs.launchCopy() / 1e3));
    row(
        lines,
        "launch of a signal",
        String.format(Locale.ROOT, "%.1f µs", costs.launchSignal() / 1e3));
    row(lines, "begin of a step", String.format(Locale.ROOT, "%.1f µs", costs.step() / 1e3));
    row(
        lines,
        "signal to another rank",
        String.format(Locale.ROOT, "%.1f µs", costs.signalInside() / 1e3));
    row(
        lines,
        "begin and end of an iteration",
        String.format(Locale.ROOT, "%.1f µs", costs.synchronize() / 1e3));
    row(
        lines,
        "not measured here",
        String.join(", ", machine.calibration().map(Calibration::missing).orElse(List.of())));
    return String.join("\n", lines) + "\n";
  }

  /// Adds the rates of the smallest and of the largest shape.
  private static void gemm(List<String> lines, String name, GemmRates rates) {
    row(lines, name, String.format(Locale.ROOT, "%s, %s", rate(rates, false), rate(rates, true)));
  }

  private static String rate(GemmRates rates, boolean largest) {
    int m = largest ? rates.rows().getLast() : rates.rows().getFirst();
    int n = largest ? rates.columns().getLast() : rates.columns().getFirst();
    int k = largest ? rates.depths().getLast() : rates.depths().getFirst();
    return String.format(
        Locale.ROOT, "%d×%d×%d: %.1f GFLOPS", m, n, k, 2.0 * m * n * k / rates.nanos(m, n, k));
  }

  private static void row(List<String> lines, String name, String value) {
    lines.add("  " + name + " ".repeat(Math.max(1, NAME_COLUMNS - name.length())) + value);
  }
}
