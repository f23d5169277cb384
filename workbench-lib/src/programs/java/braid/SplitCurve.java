package braid;

import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/// Prints the time of an iteration for each split count, on ranks that are processes: the
/// measurement behind the default link and the notebooks' sizes. Not a test; run it by hand:
///
/// `java -cp … braid.SplitCurve [ranks m n k rounds link]`
final class SplitCurve {
  private static final List<String> DEFAULTS =
      List.of("4", "3840", "2880", "640", "10", Link.DEFAULT.toString());

  private SplitCurve() {}

  public static void main(String[] given) throws IOException, InterruptedException {
    var all = new ArrayList<>(Arrays.asList(given));
    all.addAll(DEFAULTS.subList(given.length, DEFAULTS.size()));
    System.out.println("ranks m n k rounds link = " + String.join(" ", all));
    for (var ended :
        ProcessRanks.run(
            Integer.parseInt(all.getFirst()),
            Map.of("BRAID_LINK", all.getLast()),
            OnRank.class,
            all.toArray(String[]::new))) {
      if (ended.rank() == 0 || ended.exitCode() != 0) {
        System.out.println(ended.output());
      }
    }
  }

  /// Code of each rank: an iteration of every configuration in turn, so that disturbances of the
  /// machine affect all of them.
  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) {
      var spec =
          GemmSpec.allGatherGemm(
              Integer.parseInt(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
      int rounds = Integer.parseInt(args[4]);
      var hows = new ArrayList<>(List.of(Overlap.unfused()));
      for (int splits : new int[] {1, 2, 4, 8, 16, 32, 64}) {
        hows.add(Overlap.pipelined(splits));
      }
      hows.add(Overlap.pipelined(4).streams(2));
      hows.add(Overlap.direct());
      hows.add(Overlap.direct(4));
      try (var world = ProcessGroup.world()) {
        var pipes = hows.stream().map(tuning -> build(world, spec, tuning)).toList();
        var nanos = new long[pipes.size()][rounds];
        for (int round = 0; round < rounds; round++) {
          for (int i = 0; i < pipes.size(); i++) {
            // The slowest rank's time is the group's.
            long mine = pipes.get(i).time(1)[0];
            nanos[i][round] = Arrays.stream(world.gather(mine)).max().orElse(0);
          }
        }
        for (int i = 0; i < pipes.size(); i++) {
          print(world, pipes.get(i), nanos[i]);
        }
      }
    }

    private static Pipeline build(ProcessGroup world, GemmSpec spec, Overlap tuning) {
      var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build();
      pipe.verify();
      return pipe;
    }

    private static void print(ProcessGroup world, Pipeline pipe, long... nanos) {
      Arrays.sort(nanos);
      var profile = pipe.profile(1);
      var copy = Arrays.stream(world.gather(sum(profile, Stage.COPY))).max().orElse(0);
      var gemm = Arrays.stream(world.gather(sum(profile, Stage.GEMM))).max().orElse(0);
      var error = Arrays.stream(world.gather(profile.clockErrorNanos())).max().orElse(0);
      if (world.rank() == 0) {
        System.out.printf(
            "%-46s least %7.2f ms  median %7.2f ms | gemm %7.2f ms, copy %6.2f ms, clock %d us%n",
            pipe.tuning(),
            nanos[0] / 1e6,
            nanos[nanos.length / 2] / 1e6,
            gemm / 1e6,
            copy / 1e6,
            error / 1000);
      }
    }

    private static long sum(Profile profile, Stage stage) {
      return profile.spans().stream()
          .filter(span -> span.stage() == stage)
          .mapToLong(Span::nanos)
          .sum();
    }
  }
}
