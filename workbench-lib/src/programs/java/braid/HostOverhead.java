package braid;

import braid.internal.host.Cores;
import braid.internal.host.HostGemm;
import braid.internal.host.WorkQueue;
import braid.internal.rank.Waits;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.schedule.Slice;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;

/// Prints the overhead of a pipelined all-gather→GEMM over a link without cost: the time of an
/// iteration ÷ that of the same multiplications in the same order, by one task of a thread on the
/// same cores and with no other work. Rounds in which other processes used more than a tenth of the
/// machine are excluded, whatever their result, and counted. Not a test; run it by hand:
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
        "| ranks | splits | streams | plain ms | pipelined ms | ratio | p10 to p90"
            + " | by own times | p10 to p90 | plain again ÷ plain | copying | left out |");
    System.out.println("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
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

  /// Code of each rank: the plain multiplications, the pipeline and the plain ones again, round by
  /// round, so that a slowdown of the machine affects both.
  static final class OnRank {
    private static final int UNTIMED_ROUNDS = 3;
    private static final double QUIET_SHARE = 0.1;

    /// Excluded rounds per wanted round, from which a machine is too busy to measure on.
    private static final int MOST_LEFT_OUT = 5;

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
                        .overlap(Overlap.pipelined(splits).streams(streams))
                        .build();
                var plain = new Plain(pipe)) {
              pipe.verify();
              for (int round = 0; round < UNTIMED_ROUNDS; round++) {
                pipe.run();
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
      var ownRatios = new double[rounds];
      var again = new double[rounds];
      int kept = 0;
      int leftOut = 0;
      while (kept < rounds && leftOut < MOST_LEFT_OUT * rounds) {
        var machine = new Machine(world);
        var first = Took.by(world, plain::nanos);
        var middle = Took.by(world, () -> nanos(pipe));
        var last = Took.by(world, plain::nanos);
        before[kept] = first.group();
        piped[kept] = middle.group();
        double after = last.group();
        ownRatios[kept] = middle.slowest() / ((first.slowest() + last.slowest()) / 2);
        // A linear drift within a round cancels in the ratio.
        ratios[kept] = piped[kept] / ((before[kept] + after) / 2);
        again[kept] = after / before[kept];
        if (machine.othersShare() <= QUIET_SHARE) {
          kept++;
        } else {
          leftOut++;
        }
      }
      if (kept == 0) {
        if (world.rank() == 0) {
          System.out.printf(
              "| %d | %d | %d | the machine was too busy: %d of %d rounds left out |%n",
              world.size(),
              ((Overlap) pipe.tuning()).splits(),
              ((Overlap) pipe.tuning()).streams(),
              leftOut,
              leftOut);
        }
        return;
      }
      var profile = pipe.profile(rounds);
      double iteration = profile.iterationNanos().stream().mapToLong(Long::longValue).sum();
      double copy = mean(world, sum(profile, Stage.COPY) / iteration);
      if (world.rank() == 0) {
        System.out.printf(
            "| %d | %d | %d | %.2f | %.2f | **%.3f** | %.3f to %.3f | %.3f"
                + " | %.3f to %.3f | %.3f to %.3f"
                + " | %.1f%% | %d of %d |%n",
            world.size(),
            ((Overlap) pipe.tuning()).splits(),
            ((Overlap) pipe.tuning()).streams(),
            quantile(0.5, kept, before) / 1e6,
            quantile(0.5, kept, piped) / 1e6,
            quantile(0.5, kept, ratios),
            quantile(0.1, kept, ratios),
            quantile(0.9, kept, ratios),
            quantile(0.5, kept, ownRatios),
            quantile(0.1, kept, ownRatios),
            quantile(0.9, kept, ownRatios),
            quantile(0.1, kept, again),
            quantile(0.9, kept, again),
            100 * copy,
            leftOut,
            leftOut + kept);
      }
    }

    private static long nanos(Pipeline pipe) {
      long start = System.nanoTime();
      pipe.run();
      return System.nanoTime() - start;
    }

    private static double mean(ProcessGroup world, double mine) {
      return Arrays.stream(world.gather(mine)).average().orElse(0);
    }

    private static double quantile(double share, int count, double... values) {
      var sorted = Arrays.copyOf(values, count);
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

  /// Times of all ranks for the same work.
  ///
  /// @param group time from the first rank's start to the last one's end; processes of a machine
  ///   share one clock
  /// @param slowest time of the slowest rank, from its own start
  private record Took(double group, double slowest) {
    static Took by(ProcessGroup world, LongSupplier body) {
      world.barrier();
      long start = System.nanoTime();
      long own = body.getAsLong();
      long end = System.nanoTime();
      return new Took(
          Arrays.stream(world.gather(end)).max().orElseThrow()
              - Arrays.stream(world.gather(start)).min().orElseThrow(),
          Arrays.stream(world.gather(own)).max().orElseThrow());
    }
  }

  /// CPU time of processes other than the ranks, from now on.
  private static final class Machine {
    private static final long NANOS_PER_TICK = 10_000_000;
    private static final int BUSY_MODES_BEFORE_IDLE = 3;
    private static final int FIRST_BUSY_MODE_AFTER_IDLE = 6;

    private final ProcessGroup group;
    private final long startNanos = System.nanoTime();
    private final long startBusy;
    private final long startOwn;

    Machine(ProcessGroup group) {
      this.group = group;
      startBusy = busyNanos();
      startOwn = ownNanos();
    }

    /// Returns the share that rank 0 sees, on all ranks.
    double othersShare() {
      long own = Arrays.stream(group.gather(ownNanos() - startOwn)).sum();
      double wall =
          (double) (System.nanoTime() - startNanos) * Runtime.getRuntime().availableProcessors();
      return group.broadcast((busyNanos() - startBusy - own) / wall, 0);
    }

    private static long ownNanos() {
      return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    private static long busyNanos() {
      try (var lines = Files.lines(Path.of("/proc/stat"))) {
        // cpu user nice system idle iowait irq softirq steal ...
        var ticks = lines.findFirst().orElseThrow().trim().split(" +", -1);
        long busy = 0;
        for (int mode = 1; mode <= FIRST_BUSY_MODE_AFTER_IDLE + 2; mode++) {
          if (mode <= BUSY_MODES_BEFORE_IDLE || mode >= FIRST_BUSY_MODE_AFTER_IDLE) {
            busy += Long.parseLong(ticks[mode]);
          }
        }
        return busy * NANOS_PER_TICK;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /// The multiplications of a pipelined all-gather→GEMM in its order: of each chunk this rank's own
  /// rows, then the peers'. One task runs all of them, on a thread with the cores and the priority
  /// of the pipeline's.
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
      var spec = (GemmSpec) pipe.problem();
      int splits = ((Overlap) pipe.tuning()).splits();
      var whole = arena.allocate((long) spec.m() * spec.k() * spec.dtype().bytes(), Long.SIZE);
      int size = group.size();
      var mine = Slice.of(spec.m(), size, group.rank());
      for (int chunk = 0; chunk < splits; chunk++) {
        var own = mine.part(splits, chunk);
        lay(pipe, pipe.input().segment(), own.shifted(-mine.start()), own);
        for (int step = 1; step < size; step++) {
          var others = Slice.of(spec.m(), size, (group.rank() + step) % size).part(splits, chunk);
          lay(pipe, whole, others, others);
        }
      }
    }

    private void lay(Pipeline pipe, MemorySegment input, Slice from, Slice to) {
      var spec = (GemmSpec) pipe.problem();
      int columns = Math.toIntExact(pipe.weight().shape().getLast());
      var weight = Matrix.of(pipe.weight().segment(), spec.dtype(), spec.k(), columns);
      var output = Matrix.of(pipe.output().segment(), spec.dtype(), spec.m(), columns);
      long rowBytes = (long) spec.k() * spec.dtype().bytes();
      if (!from.isEmpty()) {
        gemms.add(
            new Gemm(
                Matrix.of(
                    input.asSlice(from.start() * rowBytes, from.length() * rowBytes),
                    spec.dtype(),
                    (int) from.length(),
                    spec.k()),
                new Operand(weight, DType.FP32, Optional.empty()),
                output.rows((int) to.start(), (int) to.length()),
                Epilogue.NONE));
      }
    }

    /// Returns their time on their thread.
    long nanos() {
      var took = new CompletableFuture<Long>();
      thread.add(
          () -> "plain multiplications",
          () -> {
            long start = System.nanoTime();
            gemms.forEach(multiplier::multiply);
            took.complete(System.nanoTime() - start);
          });
      return waits.until(() -> "plain multiplications", left -> waits.poll(took, left));
    }

    @Override
    public void close() {
      thread.close();
      multiplier.close();
      arena.close();
    }
  }
}
