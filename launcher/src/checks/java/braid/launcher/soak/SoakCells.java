package braid.launcher.soak;

import java.util.List;
import java.util.Random;

/// Cells of a soak.
final class SoakCells {
  /// Printed by a cell that has begun.
  static final String BEGUN = "soak-begun";

  /// Checks that the ranks work together, and prints their process ids.
  static final String HEALTH =
      """
      try (var healthy = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(24, 8, 16)).overlap(Overlap.pipelined(2)).build()) {
        healthy.verify();
      }
      "pids " + Arrays.toString(world.gather(ProcessHandle.current().pid()))
      """;

  private static final String BEGIN = "System.out.println(\"%s\"); System.out.flush();%n";

  private static final List<String> WAITING =
      List.of(
          "while (true) { }",
          "while (true) Thread.sleep(20);",
          "while (true) world.barrier();",
          "if (world.rank() == %d) while (true) Thread.sleep(20); else world.barrier();",
          """
          try (var p = Pipeline.on(world).gemm(GemmSpec.gemmReduceScatter(48, 32, 64)).overlap(Overlap.pipelined(2)).build()) {
            while (true) p.run();
          }
          """);

  private static final List<String> FLOODING =
      List.of(
          "while (true) System.out.println(\"flood \" + System.nanoTime());",
          "while (true) System.err.println(\"flood \".repeat(20) + world.rank());",
          "var line = \"x\".repeat(1 << 16); while (true) System.out.print(line);",
          "while (true) display(world.rank());");

  private SoakCells() {}

  /// Returns a cell that ends only if it is stopped.
  static String endless(Random random, int rank) {
    var all = random.nextInt(3) == 0 ? FLOODING : WAITING;
    return waiting(all.get(random.nextInt(all.size())), rank);
  }

  /// Returns an endless cell without output.
  static String quiet(Random random, int rank) {
    return waiting(WAITING.get(random.nextInt(WAITING.size())), rank);
  }

  private static String waiting(String code, int rank) {
    return BEGIN.formatted(BEGUN) + code.replace("%d", Integer.toString(rank));
  }

  /// Returns a cell that succeeds after a quarter of a second.
  static String finite() {
    return BEGIN.formatted(BEGUN)
        + "for (int i = 0; i < 25; i++) { world.barrier(); Thread.sleep(10); }";
  }

  /// Returns a cell in which every rank prints a lot.
  static String flood(Random random) {
    int lines = 2_000 + random.nextInt(20_000);
    return "for (int i = 0; i < %d; i++) System.%s.println(\"line \" + i + \" of rank \" + world.rank());%n\"flooded\""
        .formatted(lines, random.nextBoolean() ? "out" : "err");
  }

  /// Returns a cell in which a rank ends its own process.
  static String exit(Random random, int rank) {
    return "if (world.rank() == %d) %s; world.barrier();"
        .formatted(rank, random.nextBoolean() ? "System.exit(3)" : "Runtime.getRuntime().halt(4)");
  }

  /// A failing cell, and the texts that its failure must contain.
  record Failing(String code, List<String> says) {
    static Failing draw(Random random, int rank, int ranks) {
      var named = "rank " + rank;
      return switch (random.nextInt(ranks > 1 ? 6 : 5)) {
        case 0 ->
            new Failing(
                "if (world.rank() == %d) throw new IllegalStateException(\"planted\"); world.barrier();"
                    .formatted(rank),
                List.of(named, "planted"));
        case 1 -> new Failing("int broken = ;", List.of("illegal start of expression"));
        case 2 ->
            new Failing(
                "if (world.rank() == %d) { var all = new long[Integer.MAX_VALUE]; System.out.println(all.length); } world.barrier();"
                    .formatted(rank),
                List.of(named, "OutOfMemoryError"));
        case 3 ->
            new Failing(
                "if (world.rank() == %d) new Object() { int f(int n) { return f(n + 1) + 1; } }.f(0); world.barrier();"
                    .formatted(rank),
                List.of(named, "StackOverflowError"));
        case 4 -> new Failing("%load /nowhere/at/all.java", List.of("/nowhere/at/all.java"));
        default ->
            new Failing(
                "if (world.rank() == %d) world.barrier();".formatted(rank),
                List.of(named, "ended the cell"));
      };
    }
  }
}
