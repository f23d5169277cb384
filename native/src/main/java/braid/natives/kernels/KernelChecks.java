package braid.natives.kernels;

import braid.natives.cuda.Gpu;
import java.nio.file.Path;
import java.util.List;

/// Holds every kernel against plain loops on the GPU it will run on.
public final class KernelChecks {
  /// How one kernel did; `detail` is the first case that was wrong.
  public record Result(String kernel, String what, boolean ok, String detail) {}

  private KernelChecks() {}

  /// All checks, each well under a second.
  public static List<Result> run(Gpu gpu, Kernels kernels) {
    try (var bench = new CheckBench(gpu, kernels)) {
      CopyChecks.run(bench);
      LayoutChecks.run(bench);
      NumberChecks.run(bench);
      ReduceChecks.run(bench);
      SignalChecks.run(bench);
      return bench.results();
    }
  }

  /// Checks device 0, with compiled kernels kept in the folder of the first argument, prints a
  /// table, and ends with 1 if a kernel is wrong.
  public static void main(String[] args) {
    var cache =
        args.length > 0
            ? Path.of(args[0])
            : Path.of(System.getProperty("user.home"), ".cache", "braid", "kernels");
    var missing = Gpu.missing();
    if (missing.isPresent()) {
      System.err.println("kernels cannot be checked: " + missing.get());
      System.exit(1);
    }
    boolean right;
    try (var gpu = Gpu.open(0, "check");
        var kernels = Kernels.load(gpu, cache)) {
      var results = run(gpu, kernels);
      System.out.println(gpu.where());
      results.forEach(
          result ->
              System.out.printf(
                  "%-5s  %-16s  %s%s%n",
                  result.ok() ? "right" : "WRONG",
                  result.kernel(),
                  result.what(),
                  result.ok() ? "" : ": " + result.detail()));
      right = results.stream().allMatch(Result::ok);
    }
    if (!right) {
      System.exit(1);
    }
  }
}
