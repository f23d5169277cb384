package braid;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/// Prints how long an iteration takes at each split count, on ranks that are processes: what the
/// default link and the notebooks' sizes were chosen by. It is no test; run it by hand:
///
/// `java -cp … braid.SplitCurve [ranks m n k iterations link]`
final class SplitCurve {
  private SplitCurve() {}

  public static void main(String[] args) throws IOException, InterruptedException {
    int ranks = args.length > 0 ? Integer.parseInt(args[0]) : 4;
    var link = args.length > 5 ? args[5] : Link.DEFAULT.toString();
    System.out.println(ranks + " ranks, link " + link + ", " + String.join(" ", args));
    for (var ended : ProcessRanks.run(ranks, Map.of("BRAID_LINK", link), OnRank.class, args)) {
      if (ended.rank() == 0 || ended.exitCode() != 0) {
        System.out.println(ended.output());
      }
    }
  }

  /// What each rank does.
  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) {
      int m = args.length > 1 ? Integer.parseInt(args[1]) : 1920;
      int n = args.length > 2 ? Integer.parseInt(args[2]) : 1920;
      int k = args.length > 3 ? Integer.parseInt(args[3]) : 1920;
      int iterations = args.length > 4 ? Integer.parseInt(args[4]) : 10;
      var world = ProcessGroup.world();
      var spec = GemmSpec.allGatherGemm(m, n, k);
      var hows = new ArrayList<>(List.of(Overlap.unfused(), Overlap.direct()));
      for (int splits : new int[] {1, 2, 4, 8, 16, 32, 64}) {
        hows.add(Overlap.splits(splits));
      }
      hows.add(Overlap.splits(4).streams(2));
      hows.add(Overlap.unfused());
      for (var how : hows) {
        try (var pipe = Pipeline.on(world).gemm(spec).overlap(how).build()) {
          pipe.verify();
          pipe.time(1);
          var profile = pipe.profile(iterations);
          var slowest =
              world.gather(median(profile.iterationNanos().stream().mapToLong(x -> x).toArray()));
          var copies = world.gather(sum(profile, Stage.COPY) / iterations);
          var gemms = world.gather(sum(profile, Stage.GEMM) / iterations);
          var errors = world.gather(profile.clockErrorNanos());
          if (world.rank() == 0) {
            System.out.printf(
                "%-50s %8.2f ms   gemm %8.2f ms   copy %8.2f ms   clock error %d us%n",
                how,
                Arrays.stream(slowest).max().orElse(0) / 1e6,
                Arrays.stream(gemms).max().orElse(0) / 1e6,
                Arrays.stream(copies).max().orElse(0) / 1e6,
                Arrays.stream(errors).max().orElse(0) / 1000);
          }
        }
      }
      world.close();
    }

    private static long sum(Profile profile, Stage stage) {
      return profile.spans().stream()
          .filter(span -> span.stage() == stage)
          .mapToLong(Span::nanos)
          .sum();
    }

    private static long median(long... values) {
      Arrays.sort(values);
      return values[values.length / 2];
    }
  }
}
