package braid.schedule;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Overlap;
import braid.model.Span;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/// Prints predicted times of methods by the number of rows, on 2 and 16 hosts of 8 GPUs. Not a
/// test; run it by hand: `java -cp … braid.schedule.LevelPredictions`.
final class LevelPredictions {
  private static final Machine MACHINE = Machine.named("h200x8x4hosts");
  private static final int RANKS_PER_HOST = 8;
  private static final int ITERATIONS = 3;
  private static final int SIDE = 8192;
  private static final List<Integer> ROWS = List.of(1024, 2048, 4096, 8192, 16384, 32768);

  private LevelPredictions() {}

  public static void main(String... arguments) {
    System.out.printf(
        "link inside a host %s, between hosts %s%n%n",
        MACHINE.links().inside(), MACHINE.links().between());
    var tunings =
        List.of(
            Overlap.unfused(),
            Overlap.pipelined(4),
            Overlap.direct(),
            Overlap.ring(),
            Overlap.doubling(),
            Overlap.twoLevel(RANKS_PER_HOST),
            Overlap.twoLevel(RANKS_PER_HOST, 4));
    System.out.printf(
        "| ranks | problem | rows | %s |%n|--:|---|--:|%s%n",
        tunings.stream().map(Overlap::toString).collect(Collectors.joining(" | ")),
        "--:|".repeat(tunings.size()));
    for (int hosts : List.of(2, 16)) {
      for (var pattern :
          List.of(Pattern.ALL_GATHER_GEMM, Pattern.GEMM_REDUCE_SCATTER, Pattern.GEMM_ALL_REDUCE)) {
        for (int rows : ROWS) {
          var cells = new ArrayList<String>();
          var spec = spec(pattern, rows).dtype(DType.BF16);
          tunings.forEach(tuning -> cells.add(millis(spec, tuning, hosts * RANKS_PER_HOST)));
          System.out.printf(
              "| %d × %d | %s | %d | %s |%n",
              hosts, RANKS_PER_HOST, pattern, rows, String.join(" | ", cells));
        }
      }
    }
  }

  private static GemmSpec spec(Pattern pattern, int rows) {
    return switch (pattern) {
      case ALL_GATHER_GEMM -> GemmSpec.allGatherGemm(rows, SIDE, SIDE);
      case GEMM_REDUCE_SCATTER -> GemmSpec.gemmReduceScatter(rows, SIDE, SIDE);
      default -> GemmSpec.gemmAllReduce(rows, SIDE, SIDE);
    };
  }

  private static String millis(GemmSpec spec, Overlap tuning, int ranks) {
    Schedule schedule;
    try {
      schedule = Schedule.of(spec, tuning, ranks);
    } catch (BraidException refused) {
      return "–";
    }
    long end =
        schedule.simulate(MACHINE, ITERATIONS).profiles().stream()
            .flatMap(profile -> profile.spans().stream())
            .mapToLong(Span::endNanos)
            .max()
            .orElse(0);
    return String.format(Locale.ROOT, "%.2f", end / 1e6 / ITERATIONS);
  }
}
