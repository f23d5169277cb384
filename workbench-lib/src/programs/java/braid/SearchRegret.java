package braid;

import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Tuning;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/// Compares searches with an exhaustive study of the same grid, on 2 thread ranks of the host
/// backend: `SearchRegret [PROBLEMS [SEARCHES [EXHAUSTIVE_SECONDS [SEARCH_SECONDS [SEED]]]]]`.
/// Prints the regret of each search, the chosen time ÷ the true best - 1 by the exhaustive study,
/// whether the true best is the chosen tuning or one that the search calls as fast, and the share
/// of the grid that was measured.
public final class SearchRegret {
  private static final int RANKS = 2;

  private SearchRegret() {}

  /// Keeps the line on what a search measured.
  private record Kept(AtomicReference<String> searched) implements Outbox {
    @Override
    public void publish(MimeBundle bundle) {}

    @Override
    public void display(MimeBundle bundle, String displayId) {
      if (bundle.text().startsWith("searched")) {
        searched.set(bundle.text());
      }
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {}
  }

  /// @param searched line on what was measured
  private record Searched(Study<Overlap> study, String searched) {}

  public static void main(String[] args) {
    int problems = number(args, 0, 5);
    int searches = number(args, 1, 4);
    var exhaustive = Duration.ofSeconds(number(args, 2, 90));
    var budget = Duration.ofSeconds(number(args, 3, 20));
    var random = new Random(number(args, 4, 1));
    var regrets = new ArrayList<Double>();
    int held = 0;
    for (int problem = 0; problem < problems; problem++) {
      var spec = problem(random);
      var truth = measure(spec, false, exhaustive).study();
      var best = fastest(truth);
      System.out.printf(
          "%s: exhaustively %s, %.2f ms of %.2f ms unfused, %d rounds%n",
          spec, best, nanos(truth, best) / 1e6, truth.unfusedMedianNanos() / 1e6, truth.repeats());
      for (int search = 0; search < searches; search++) {
        var found = measure(spec, true, budget);
        var study = found.study();
        var chosen = study.simplest();
        double regret = nanos(truth, chosen) / nanos(truth, best) - 1;
        regrets.add(regret);
        var equals =
            Stream.concat(
                    Stream.of(study.best()),
                    Stream.concat(study.ties().stream(), study.undecided().stream()))
                .toList();
        boolean holds = equals.contains(best);
        held += holds ? 1 : 0;
        System.out.printf(
            "  search %d: %s, regret %.1f%%, true best %s; %s%n",
            search + 1,
            chosen,
            100 * regret,
            holds ? "among its equals" : "MISSED",
            found.searched());
      }
    }
    regrets.sort(null);
    System.out.printf(
        "regret: median %.1f%%, p95 %.1f%%, largest %.1f%%; true best among the equals in %d of %d%n",
        100 * regrets.get(regrets.size() / 2),
        100 * regrets.get((int) Math.ceil(0.95 * regrets.size()) - 1),
        100 * regrets.getLast(),
        held,
        regrets.size());
  }

  private static int number(String[] args, int index, int otherwise) {
    return args.length > index ? Integer.parseInt(args[index]) : otherwise;
  }

  private static GemmSpec problem(Random random) {
    int m = 256 << random.nextInt(3);
    int n = 128 << random.nextInt(3);
    int k = 128 << random.nextInt(3);
    return switch (random.nextInt(3)) {
      case 0 -> GemmSpec.allGatherGemm(m, n, k);
      case 1 -> GemmSpec.gemmReduceScatter(m, n, k);
      default -> GemmSpec.gemmAllReduce(m, n, k);
    };
  }

  private static Searched measure(GemmSpec spec, boolean searches, Duration budget) {
    var study = new AtomicReference<Study<Overlap>>();
    var line = new AtomicReference<>("");
    LocalRanks.run(
        RANKS,
        Link.DEFAULT,
        world -> {
          world.context().outbox(new Kept(line));
          var tuner = Tuner.on(world).gemm(spec);
          if (searches) {
            study.set(tuner.search().budget(budget).run());
          } else {
            var grid = new Grid(world);
            grid.whole();
            var all = grid.possible(spec, true, new ArrayList<>());
            study.set(tuner.overlaps(all.toArray(Tuning[]::new)).budget(budget).run());
          }
        });
    return new Searched(
        Objects.requireNonNull(study.get()), Objects.requireNonNullElse(line.get(), ""));
  }

  private static Overlap fastest(Study<Overlap> study) {
    var fastest = study.fastest();
    return study.medianNanos(fastest) < study.unfusedMedianNanos() ? fastest : study.reference();
  }

  private static double nanos(Study<Overlap> study, Overlap tuning) {
    return tuning.equals(study.reference())
        ? study.unfusedMedianNanos()
        : study.medianNanos(tuning);
  }
}
