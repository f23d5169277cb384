package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Span;
import braid.model.TokenLayout;
import braid.model.Tuning;
import braid.schedule.simulation.Machine;
import java.util.List;
import java.util.stream.IntStream;

/// Prints how much synchronization schedules have, and their predicted times, one line each: waits,
/// afters, signals, marks, other steps, a checksum of the other steps, the predicted ns of three
/// iterations, and the bytes of all buffers. Two revisions are compared by joining their lines on
/// the first column. Not a test; run it by hand:
///
/// `java -cp … braid.schedule.SynchronizationCensus [ranks…]`
final class SynchronizationCensus {
  private static final List<String> RANKS = List.of("2", "3", "4", "5", "8", "16");
  private static final int RANKS_OF_HOST = 8;
  private static final int ITERATIONS = 3;

  private SynchronizationCensus() {}

  public static void main(String[] given) {
    System.out.println("schedule|waits|afters|signals|marks|steps|checksum|ns|bytes");
    for (var text : given.length == 0 ? RANKS : List.of(given)) {
      int ranks = Integer.parseInt(text);
      gemms(ranks);
      attention(ranks);
    }
  }

  private static void gemms(int ranks) {
    for (int scale : new int[] {1, 8}) {
      int m = 960 * scale;
      int n = 256 * scale;
      int k = 192 * scale;
      for (var spec :
          List.of(
              GemmSpec.allGatherGemm(m, n, k),
              GemmSpec.allGatherGemm(m, n, k).gatheredInput(),
              GemmSpec.gemmReduceScatter(m, n, k),
              GemmSpec.gemmReduceScatter(m, n, k).bias().gelu(),
              GemmSpec.gemmAllReduce(m, n, k),
              GemmSpec.gemmAllReduce(m, n, k).bias().gelu(),
              GemmSpec.besideAllGather(m, n, k, 1200L * scale),
              GemmSpec.besideReduceScatter(m, n, k, 1200L * scale))) {
        for (var how :
            List.of(
                Overlap.pipelined(1),
                Overlap.pipelined(3),
                Overlap.pipelined(4).streams(2),
                Overlap.direct(),
                Overlap.direct(2),
                Overlap.ring(),
                Overlap.ring(2),
                Overlap.unfused(),
                Overlap.bulk())) {
          if (how.method() != Method.BULK || spec.pattern().beside()) {
            count(spec.dtype(DType.BF16), how, ranks);
          }
        }
      }
    }
  }

  private static void attention(int ranks) {
    int heads = 4 * Math.max(4, ranks);
    for (var spec :
        List.of(
            attention(60, heads, ranks).causal().dtype(DType.BF16),
            attention(600, heads, ranks).causal().layout(TokenLayout.ZIGZAG).dtype(DType.BF16),
            attention(120, heads, ranks))) {
      for (var how :
          List.of(
              ContextParallel.ring(),
              ContextParallel.ring().splits(2),
              ContextParallel.ring().streams(2),
              ContextParallel.ring().neighborToNeighbor(),
              ContextParallel.ring().splits(3).neighborToNeighbor(),
              ContextParallel.allGatherKv().splits(2),
              ContextParallel.ulysses(),
              ContextParallel.ulysses().splits(2),
              ContextParallel.unfused(),
              ContextParallel.twoLevel(2),
              ContextParallel.twoLevel(2).splits(2))) {
        count(spec, how, ranks);
        count(spec.backward(), how, ranks);
      }
    }
  }

  private static AttentionSpec attention(int tokens, int heads, int ranks) {
    int divisible = ranks == 3 || ranks == 5 ? 4 * ranks : heads;
    return AttentionSpec.of(tokens * ranks, divisible, 64).kvHeads(divisible / 2);
  }

  private static void count(Problem problem, Tuning how, int ranks) {
    Schedule schedule;
    try {
      schedule = Schedule.of(problem, how, ranks);
    } catch (BraidException refused) {
      return;
    }
    var all = IntStream.range(0, ranks).mapToObj(schedule::steps).flatMap(List::stream).toList();
    var others = all.stream().filter(step -> step.stage().isPresent()).toList();
    var byLane =
        IntStream.range(0, ranks)
            .mapToObj(
                rank ->
                    schedule.lanes().stream()
                        .map(
                            lane ->
                                schedule.steps(rank).stream()
                                    .filter(step -> step.stage().isPresent())
                                    .filter(step -> step.lane().equals(lane))
                                    .toList())
                        .toList())
            .toList();
    var machine = ranks <= RANKS_OF_HOST ? Machine.h200x8() : Machine.named("h200x8x4hosts");
    long end =
        schedule.simulate(machine, ITERATIONS).profiles().stream()
            .flatMap(profile -> profile.spans().stream())
            .mapToLong(Span::endNanos)
            .max()
            .orElse(0);
    System.out.printf(
        "%d %s %s|%d|%d|%d|%d|%d|%08x|%d|%d%n",
        ranks,
        problem,
        how,
        count(all, Step.Wait.class),
        count(all, Step.After.class),
        count(all, Step.Signal.class),
        count(all, Step.Mark.class),
        others.size(),
        byLane.toString().hashCode(),
        end,
        schedule.buffers().stream().mapToLong(Buffer::mostBytes).sum());
  }

  private static long count(List<Step> steps, Class<? extends Step> kind) {
    return steps.stream().filter(kind::isInstance).count();
  }
}
