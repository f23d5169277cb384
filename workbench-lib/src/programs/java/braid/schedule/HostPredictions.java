package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Span;
import braid.model.TokenLayout;
import braid.model.Tuning;
import braid.schedule.simulation.Machine;
import java.util.List;
import java.util.Locale;

/// Prints predictions of methods on 2 and 16 hosts of 8 GPUs, and what the check finds in their
/// schedules. Not a test; run it by hand: `java -cp … braid.schedule.HostPredictions`.
final class HostPredictions {
  private static final Machine MACHINE = Machine.named("h200x8x4hosts");
  private static final int RANKS_PER_HOST = 8;
  private static final int ITERATIONS = 3;
  private static final List<Integer> HOSTS = List.of(2, 16);

  private HostPredictions() {}

  public static void main(String... arguments) {
    System.out.printf(
        "%d ranks per host, link inside a host %s, between hosts %s%n%n",
        RANKS_PER_HOST, MACHINE.links().inside(), MACHINE.links().between());
    System.out.println("| ranks | problem | method | ms | steps | findings | check s |");
    System.out.println("|--:|---|---|--:|--:|--:|--:|");
    for (int hosts : HOSTS) {
      int ranks = hosts * RANKS_PER_HOST;
      for (var spec :
          List.of(
              GemmSpec.allGatherGemm(1024 * ranks, 8192, 8192),
              GemmSpec.gemmReduceScatter(1024 * ranks, 8192, 8192))) {
        for (var overlap :
            List.of(
                Overlap.unfused(),
                Overlap.pipelined(4),
                Overlap.direct(),
                Overlap.ring(),
                Overlap.doubling())) {
          print(ranks, spec.dtype(DType.BF16), overlap);
        }
      }
      var attention =
          AttentionSpec.of(2048 * ranks, 128, 128)
              .causal()
              .layout(TokenLayout.ZIGZAG)
              .dtype(DType.BF16);
      for (var method :
          List.of(
              ContextParallel.unfused(),
              ContextParallel.ring(),
              ContextParallel.allGatherKv(),
              ContextParallel.ulysses(),
              ContextParallel.twoLevel(RANKS_PER_HOST))) {
        print(ranks, attention, method);
      }
    }
  }

  private static void print(int ranks, Problem problem, Tuning tuning) {
    Schedule schedule;
    try {
      schedule = Schedule.of(problem, tuning, ranks);
    } catch (BraidException refused) {
      return;
    }
    long end =
        schedule.simulate(MACHINE, ITERATIONS).profiles().stream()
            .flatMap(profile -> profile.spans().stream())
            .mapToLong(Span::endNanos)
            .max()
            .orElse(0);
    int steps = 0;
    for (int rank = 0; rank < ranks; rank++) {
      steps += schedule.steps(rank).size();
    }
    long start = System.nanoTime();
    int findings = schedule.findings().size();
    System.out.printf(
        Locale.ROOT,
        "| %d | %s | %s | %.2f | %d | %d | %.1f |%n",
        ranks,
        problem,
        tuning,
        end / 1e6 / ITERATIONS,
        steps,
        findings,
        (System.nanoTime() - start) / 1e9);
  }
}
