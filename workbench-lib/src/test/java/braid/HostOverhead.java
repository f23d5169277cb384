package braid;

import braid.internal.backend.Epilogue;
import braid.internal.backend.Gemm;
import braid.internal.backend.Matrix;
import braid.internal.backend.Operand;
import braid.internal.exchange.Cut;
import braid.internal.exchange.Layout;
import braid.internal.exchange.Rows;
import braid.internal.exchange.Slice;
import braid.internal.host.Cores;
import braid.internal.host.HostGemm;
import braid.internal.host.WorkQueue;
import braid.internal.rank.Waits;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/// Prints what a pipelined all-gather→GEMM costs besides its multiplications where the link costs
/// nothing: the time of an iteration ÷ that of the very same multiplications, in the same order, on
/// one thread of the same cores with nothing else. It is no test; run it by hand:
///
/// `java -cp … braid.HostOverhead [rounds m n k ranks…]`
final class HostOverhead {
  private static final List<String> DEFAULTS = List.of("40", "3840", "2304", "640", "1", "2", "4");
  private static final int SIZES_GIVEN_BEFORE_RANKS = 4;
  private static final int[] SPLITS = {1, 2, 4, 8, 16};
  private static final int[] STREAMS = {1, 2};

  private HostOverhead() {}

  public static void main(String[] given) throws IOException, InterruptedException {
    var all = new ArrayList<>(Arrays.asList(given));
    if (all.size() <= SIZES_GIVEN_BEFORE_RANKS) {
      all.addAll(DEFAULTS.subList(given.length, DEFAULTS.size()));
    }
    System.out.println("rounds m n k ranks = " + String.join(" ", all));
    System.out.println();
    System.out.println(
        "| ranks | splits | streams | plain ms | pipelined ms | ratio | p10 to p90 | plain again |"
            + " gemm | copy | rest |");
    System.out.println("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (var ranks : all.subList(SIZES_GIVEN_BEFORE_RANKS, all.size())) {
      for (var ended :
          ProcessRanks.run(
              Integer.parseInt(ranks),
              Map.of("BRAID_LINK", Link.UNLIMITED.toString()),
              OnRank.class,
              all.subList(0, SIZES_GIVEN_BEFORE_RANKS).toArray(String[]::new))) {
        if (ended.rank() == 0 || ended.exitCode() != 0) {
          System.out.print(ended.output());
        }
      }
    }
  }

  /// What each rank does: the plain multiplications, the pipeline and the plain ones again, round
  /// by round, so that a machine which slows down slows both.
  static final class OnRank {
    private static final int UNTIMED_ROUNDS = 3;

    private OnRank() {}

    public static void main(String[] args) {
      int rounds = Integer.parseInt(args[0]);
      var spec =
          GemmSpec.allGatherGemm(
              Integer.parseInt(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
      try (var world = ProcessGroup.world()) {
        for (int streams : STREAMS) {
          for (int splits : SPLITS) {
            try (var pipe =
                    Pipeline.on(world)
                        .gemm(spec)
                        .overlap(Overlap.splits(splits).streams(streams))
                        .build();
                var plain = new Plain(pipe)) {
              pipe.verify();
              for (int round = 0; round < UNTIMED_ROUNDS; round++) {
                var _ = pipe.time(1);
                var _ = plain.nanos();
              }
              measure(world, pipe, plain, rounds);
            }
          }
        }
      }
    }

    private static void measure(ProcessGroup world, Pipeline pipe, Plain plain, int rounds) {
      var before = new double[rounds];
      var piped = new double[rounds];
      var ratios = new double[rounds];
      var again = new double[rounds];
      for (int round = 0; round < rounds; round++) {
        before[round] = slowest(world, plain.nanos());
        piped[round] = slowest(world, pipe.time(1)[0]);
        double after = slowest(world, plain.nanos());
        // What drifts evenly through a round is gone from the ratio.
        ratios[round] = piped[round] / ((before[round] + after) / 2);
        again[round] = after / before[round];
      }
      var profile = pipe.profile(rounds);
      double iteration = profile.iterationNanos().stream().mapToLong(Long::longValue).sum();
      double gemm = mean(world, sum(profile, Stage.GEMM) / iteration);
      double copy = mean(world, sum(profile, Stage.COPY) / iteration);
      if (world.rank() == 0) {
        System.out.printf(
            "| %d | %d | %d | %.2f | %.2f | **%.3f** | %.3f to %.3f | %.3f to %.3f"
                + " | %.0f%% | %.0f%% | %.1f%% |%n",
            world.size(),
            pipe.overlap().splits(),
            pipe.overlap().streams(),
            quantile(0.5, before) / 1e6,
            quantile(0.5, piped) / 1e6,
            quantile(0.5, ratios),
            quantile(0.1, ratios),
            quantile(0.9, ratios),
            quantile(0.1, again),
            quantile(0.9, again),
            100 * gemm,
            100 * copy,
            100 * (1 - gemm));
      }
    }

    private static double slowest(ProcessGroup world, long mine) {
      return Arrays.stream(world.gather(mine)).max().orElse(0);
    }

    private static double mean(ProcessGroup world, double mine) {
      return Arrays.stream(world.gather(mine)).average().orElse(0);
    }

    private static double quantile(double share, double... values) {
      var sorted = values.clone();
      Arrays.sort(sorted);
      return sorted[(int) Math.round(share * (sorted.length - 1))];
    }

    private static double sum(Profile profile, Stage stage) {
      return profile.spans().stream()
          .filter(span -> span.stage() == stage)
          .mapToLong(Span::nanos)
          .sum();
    }
  }

  /// The multiplications of a pipelined all-gather→GEMM in its order: of each chunk this rank's own
  /// rows, then the peers'. One task of a thread that has the cores and the standing of the
  /// pipeline's does them all.
  private static final class Plain implements AutoCloseable {
    private final ProcessGroup group;
    private final Waits waits;
    private final Arena arena = Arena.ofShared();
    private final HostGemm multiplier;
    private final WorkQueue thread;
    private final List<Gemm> gemms = new ArrayList<>();

    Plain(Pipeline pipe) {
      group = pipe.group();
      waits = group.context().waits();
      var local = group.context().env().local();
      multiplier =
          new HostGemm(Math.max(1, Runtime.getRuntime().availableProcessors() / local.size()));
      thread = new WorkQueue("plain", waits, Cores.of(local).yieldingToOthers());
      lay(pipe);
    }

    private void lay(Pipeline pipe) {
      var spec = pipe.spec();
      var rows = new Rows(spec.dtype(), spec.k());
      var layout =
          Layout.byPart(spec.m(), group.size(), new Cut(pipe.overlap().splits(), List.of()));
      var whole = arena.allocate(rows.bytes(spec.m()), Long.SIZE);
      int first = layout.rows(group.rank(), 0).start();
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        var own = layout.rows(group.rank(), chunk);
        lay(pipe, pipe.input().segment(), new Slice(own.start() - first, own.length()), own);
        for (int step = 1; step < group.size(); step++) {
          var others = layout.rows((group.rank() + step) % group.size(), chunk);
          lay(pipe, whole, others, others);
        }
      }
    }

    private void lay(Pipeline pipe, MemorySegment input, Slice from, Slice to) {
      var spec = pipe.spec();
      int columns = Math.toIntExact(pipe.weight().shape().getLast());
      var weight = Matrix.of(pipe.weight().segment(), spec.dtype(), spec.k(), columns);
      var output = Matrix.of(pipe.output().segment(), spec.dtype(), spec.m(), columns);
      if (from.length() > 0) {
        gemms.add(
            new Gemm(
                new Rows(spec.dtype(), spec.k()).matrix(input, from),
                new Operand(weight, Optional.empty()),
                output.rows(to.start(), to.length()),
                Epilogue.NONE));
      }
    }

    /// How long they take on this rank, while the others do theirs.
    long nanos() {
      group.barrier();
      var took = new CompletableFuture<Long>();
      thread.add(
          () -> "plain multiplications",
          () -> {
            long start = System.nanoTime();
            gemms.forEach(multiplier::multiply);
            took.complete(System.nanoTime() - start);
          });
      return waits.until(() -> "plain multiplications", nanos -> waits.poll(took, nanos));
    }

    @Override
    public void close() {
      thread.close();
      multiplier.close();
      arena.close();
    }
  }
}
