package braid;

import braid.internal.report.statistics.Spread;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.Link;
import braid.model.Profile;
import braid.model.Stage;
import braid.model.TokenLayout;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// Prints simulated beside measured times of attention on the host backend, for random combinations
/// of shape, mask, layout, method, splits, streams and link. Combinations take turns, so that
/// disturbances of the machine affect all of them. The machine's description is measured once,
/// without these combinations. On a loaded machine the processor time of rank 0, beside the
/// simulated time of its computation, is the better comparison. Not a test; run it by hand:
///
/// `java -cp … braid.AttentionAccuracy [seed combinations rounds ranks]`
final class AttentionAccuracy {
  private static final List<String> DEFAULTS = List.of("1", "12", "12", "2");

  private AttentionAccuracy() {}

  public static void main(String[] given) throws IOException, InterruptedException {
    var all = new ArrayList<>(Arrays.asList(given));
    all.addAll(DEFAULTS.subList(given.length, DEFAULTS.size()));
    for (var ended :
        ProcessRanks.run(
            Integer.parseInt(all.get(3)),
            Map.of("BRAID_LINK", Link.UNLIMITED.toString(), "BRAID_BACKEND", "host"),
            OnRank.class,
            all.toArray(String[]::new))) {
      if (ended.rank() == 0 || ended.exitCode() != 0) {
        System.out.print(ended.output());
      }
    }
  }

  private record Combination(AttentionSpec spec, ContextParallel tuning, Link link) {
    private static final double LEAST_GFLOP = 0.4;
    private static final double MOST_GFLOP = 4;

    static Combination random(SplittableRandom random, int ranks) {
      while (true) {
        int headSize = List.of(32, 64, 64, 128).get(random.nextInt(4));
        int kvHeads = 1 << random.nextInt(3);
        int heads = kvHeads << random.nextInt(3);
        var spec =
            AttentionSpec.of(256 * random.nextInt(2, 25), heads, headSize)
                .kvHeads(kvHeads)
                .layout(List.of(TokenLayout.values()).get(random.nextInt(2)));
        switch (random.nextInt(4)) {
          case 0 -> {}
          case 1 -> spec = spec.causal().window(64 * random.nextInt(2, 17));
          default -> spec = spec.causal();
        }
        int third = spec.sequence() / 3;
        spec =
            random.nextInt(4) > 0 ? spec : spec.packed(0, third, 2 * third + 50, spec.sequence());
        int splits = random.nextInt(1, 4);
        var tuning =
            switch (random.nextInt(5)) {
              case 0 -> ContextParallel.unfused();
              case 1, 2 -> ContextParallel.allGatherKv().splits(splits);
              default -> ContextParallel.ring().splits(splits).streams(random.nextInt(1, 3));
            };
        double bytes = 8.0 * spec.sequence() / ranks * kvHeads * headSize * (ranks - 1);
        double seconds = spec.flops() / ranks / 50e9 * Math.exp(random.nextDouble(-1.5, 0.5));
        var link =
            bytes == 0
                ? Link.DEFAULT
                : new Link(
                    Math.max(1, Math.round(bytes / seconds / 1e6)) * 1e6,
                    1000L * random.nextInt(5, 200));
        double gflop = spec.flops() / ranks / 1e9;
        if (gflop >= LEAST_GFLOP && gflop <= MOST_GFLOP) {
          return new Combination(spec, tuning, link);
        }
      }
    }
  }

  static final class OnRank {
    private static final int ITERATIONS = 4;

    private OnRank() {}

    public static void main(String[] args) {
      var random = new SplittableRandom(Long.parseLong(args[0]));
      int rounds = Integer.parseInt(args[2]);
      try (var world = ProcessGroup.world()) {
        var machine = Machine.ofThisHost();
        var combinations = new ArrayList<Combination>();
        var built = new ArrayList<Pipeline>();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
          var each = Combination.random(random, world.size());
          combinations.add(each);
          built.add(Pipeline.on(world).attention(each.spec()).overlap(each.tuning()).build());
        }
        var nanos = new long[built.size()][rounds];
        var busy = new double[built.size()];
        Arrays.fill(busy, Double.POSITIVE_INFINITY);
        for (var each : built) {
          each.time(ITERATIONS);
        }
        for (int round = 0; round < rounds; round++) {
          for (int i = 0; i < built.size(); i++) {
            world.playLink(combinations.get(i).link());
            double before = busyMillis();
            var mine = built.get(i).time(ITERATIONS);
            busy[i] = Math.min(busy[i], (busyMillis() - before) / ITERATIONS);
            // The slowest rank of each iteration; of these, the fastest.
            nanos[i][round] =
                Arrays.stream(mine)
                    .map(each -> Arrays.stream(world.gather(each)).max().orElseThrow())
                    .min()
                    .orElseThrow();
          }
        }
        if (world.rank() == 0) {
          print(machine, world.size(), combinations, busy, nanos);
        }
        world.barrier();
      }
    }

    /// Returns the processor time of this process.
    private static double busyMillis() {
      return ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos() / 1e6;
    }

    /// Returns the time during which any attention computes; those of two streams share a core.
    private static double computingMillis(Profile profile) {
      long nanos = 0;
      long end = Long.MIN_VALUE;
      for (var span : profile.spans()) {
        if (span.stage() == Stage.ATTENTION) {
          nanos += Math.max(0, span.endNanos() - Math.max(end, span.startNanos()));
          end = Math.max(end, span.endNanos());
        }
      }
      return nanos / 1e6;
    }

    private static void print(
        Machine machine,
        int ranks,
        List<Combination> combinations,
        double[] busy,
        long[]... nanos) {
      var errors = new ArrayList<Long>();
      var busyErrors = new ArrayList<Long>();
      System.out.println(
          "| problem | tuning | link | measured ms | median of all | simulated ms | ratio | processor ms | simulated ms | ratio |");
      System.out.println("|---|---|---|--:|--:|--:|--:|--:|--:|--:|");
      for (int i = 0; i < combinations.size(); i++) {
        var each = combinations.get(i);
        double median = Spread.of(Arrays.stream(nanos[i]).boxed().toList()).medianNanos();
        double measured = Arrays.stream(nanos[i]).min().orElseThrow();
        var run =
            Schedule.of(each.spec(), each.tuning(), ranks)
                .simulate(machine.withLink(each.link()), ITERATIONS);
        double simulated = run.summary().medianNanos();
        double computed = computingMillis(run.profiles().getFirst()) / ITERATIONS;
        busyErrors.add(Math.round(1e6 * Math.abs(computed / busy[i] - 1)));
        errors.add(Math.round(1e6 * Math.abs(simulated / measured - 1)));
        System.out.printf(
            "| %s | %s | %s | %.2f | %.2f | %.2f | %.3f | %.2f | %.2f | %.3f |%n",
            each.spec(),
            each.tuning(),
            ranks == 1 ? "" : each.link(),
            measured / 1e6,
            median / 1e6,
            simulated / 1e6,
            simulated / measured,
            busy[i],
            computed,
            computed / busy[i]);
      }
      System.out.printf(
          "median |error| %.1f%%, p90 %.1f%% over %d%n",
          Spread.of(errors).medianNanos() / 1e4, Spread.of(errors).p90Nanos() / 1e4, errors.size());
      System.out.printf(
          "processor time: median |error| %.1f%%, p90 %.1f%%%n",
          Spread.of(busyErrors).medianNanos() / 1e4, Spread.of(busyErrors).p90Nanos() / 1e4);
      machine
          .toString()
          .lines()
          .filter(line -> line.matches("(name|weights|attention|memory bandwidth|compute).*"))
          .forEach(System.out::println);
    }
  }
}
