package braid.natives.kernels;

import braid.natives.cuda.Gpu;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;

/// Compares every kernel with plain loops on the GPU that will run it.
public final class KernelChecks {
  /// Result of one check; `detail` is the first wrong case.
  public record Result(String kernel, String subject, boolean ok, String detail) {}

  private KernelChecks() {}

  /// Groups of checks, so that slow tools can run a part, and one that does not end has a name.
  public enum Group {
    COPY,
    LAYOUT,
    NUMBER,
    BOUND,
    REDUCE,
    HANDSHAKE,
    ATTENTION;

    private void run(CheckBench bench) {
      switch (this) {
        case COPY -> CopyChecks.run(bench);
        case LAYOUT -> LayoutChecks.run(bench);
        case NUMBER -> NumberChecks.run(bench);
        case BOUND -> BoundChecks.run(bench);
        case REDUCE -> ReduceChecks.run(bench);
        case HANDSHAKE -> HandshakeChecks.run(bench);
        case ATTENTION -> {
          AttentionChecks.run(bench);
          AttentionFoldChecks.run(bench);
          AttentionRecodeChecks.run(bench);
          AttentionGradientChecks.run(bench);
        }
      }
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }

    static Group parse(String name) {
      return Arrays.stream(values())
          .filter(group -> group.name().equalsIgnoreCase(name))
          .findFirst()
          .orElseThrow(
              () ->
                  new IllegalArgumentException(
                      "a group of checks must be one of %s but was %s"
                          .formatted(Arrays.toString(values()), name)));
    }
  }

  /// Runs the checks of some groups, each well under a second.
  public static List<Result> run(
      Gpu gpu, Kernels kernels, AttentionKernels attention, Group... groups) {
    return run(gpu, kernels, attention, List.of(groups), result -> {});
  }

  private static List<Result> run(
      Gpu gpu,
      Kernels kernels,
      AttentionKernels attention,
      List<Group> groups,
      Consumer<Result> onResult) {
    try (var bench = new CheckBench(gpu, kernels, attention, onResult)) {
      groups.forEach(group -> group.run(bench));
      return bench.results();
    }
  }

  /// Checks device 0 and prints each result. Exits with 1 if a kernel is wrong. The first argument
  /// is the cache folder of compiled kernels; further arguments name groups of checks, all by
  /// default.
  public static void main(String[] args) {
    var cache =
        args.length > 0
            ? Path.of(args[0])
            : Path.of(System.getProperty("user.home"), ".cache", "braid", "kernels");
    var groups =
        args.length > 1
            ? Arrays.stream(args).skip(1).map(Group::parse).toList()
            : List.of(Group.values());
    var missing = Gpu.missing();
    if (missing.isPresent()) {
      System.err.println("kernels cannot be checked: " + missing.get());
      System.exit(1);
    }
    boolean right;
    try (var gpu = Gpu.open(0, "check");
        var kernels = Kernels.load(gpu, cache);
        var attention = AttentionKernels.load(gpu, cache)) {
      System.out.println(gpu.where());
      right =
          run(gpu, kernels, attention, groups, KernelChecks::print).stream().allMatch(Result::ok);
    }
    if (!right) {
      System.exit(1);
    }
  }

  private static void print(Result result) {
    System.out.printf(
        "%-5s  %-16s  %s%s%n",
        result.ok() ? "right" : "WRONG",
        result.kernel(),
        result.subject(),
        result.ok() ? "" : ": " + result.detail());
  }
}
