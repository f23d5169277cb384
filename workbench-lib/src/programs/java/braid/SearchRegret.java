package braid;

import braid.evidence.Decision;
import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Tuning;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Compares searches with an exhaustive study of the same grid, on 2 thread ranks of the host
/// backend: `SearchRegret [PROBLEMS [SEARCHES [EXHAUSTIVE_SECONDS [SEARCH_SECONDS [JUDGE_SECONDS
/// [SEED]]]]]]`.
///
/// The fastest of many noisy times is fast by luck, too. So the tunings that the searches chose and
/// the fastest of the exhaustive study are measured once more, together and long: the true best is
/// the fastest there, and the regret of a search is its tuning's time there ÷ the best's - 1: the
/// median of the quotients within a round, since the whole machine may be faster for seconds and
/// slower for others. A regret is significant if its interval, of 95% confidence, excludes zero.
/// Also printed is whether the true best is the chosen tuning or one that the search does not call
/// slower, and the share of the grid that was measured.
public final class SearchRegret {
  private static final int RANKS = 2;

  /// Fastest tunings of the exhaustive study that are measured again.
  private static final int FASTEST = 6;

  private static final int LEAST_ROUNDS = 20;

  /// Times that these are built and measured, since pipelines of one tuning differ, too.
  private static final int BUILDS = 3;

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
    int judging = number(args, 4, 60);
    var random = new Random(number(args, 5, 1));
    var regrets = new ArrayList<Double>();
    var significant = new ArrayList<Double>();
    int held = 0;
    int heldWithinNoise = 0;
    for (int problem = 0; problem < problems; problem++) {
      var spec = problem(random);
      var all = all(spec);
      var exhausted = measure(spec, tuner -> tuner.overlaps(all).budget(exhaustive)).study();
      var found = new ArrayList<Searched>();
      for (int search = 0; search < searches; search++) {
        found.add(measure(spec, tuner -> tuner.search().budget(budget)));
      }
      var judged =
          Stream.concat(
                  found.stream().map(each -> Decision.taken(each.study())),
                  exhausted.trials().stream()
                      .sorted(Comparator.comparingDouble(Study.Trial::medianNanos))
                      .limit(FASTEST)
                      .map(Study.Trial::configuration))
              .filter(tuning -> !tuning.equals(exhausted.reference()))
              .distinct()
              .toList();
      double nanosEach =
          (double) exhausted.measuredNanos()
              / exhausted.repeats()
              / (exhausted.trials().size() + 2);
      int rounds =
          Math.max(LEAST_ROUNDS, (int) (judging * 1e9 / BUILDS / nanosEach / (judged.size() + 2)));
      var truth =
          measure(spec, tuner -> tuner.overlaps(judged).builds(BUILDS).repeats(BUILDS * rounds))
              .study();
      var best = fastest(truth);
      System.out.printf(
          "%s: %d tunings, %d rounds; then %d tunings, %d rounds: %s, %.2f ms of %.2f ms unfused%n",
          spec,
          all.size(),
          exhausted.repeats(),
          judged.size(),
          truth.repeats(),
          best,
          nanos(truth, best) / 1e6,
          truth.unfusedMedianNanos() / 1e6);
      for (var each : found) {
        var chosen = Decision.taken(each.study());
        double regret = quotient(truth, chosen, best) - 1;
        var interval = truth.excess(chosen, best);
        boolean isSignificant = interval.low() > 0;
        regrets.add(regret);
        significant.add(isSignificant ? regret : 0);
        var equals =
            Stream.concat(
                    Stream.of(each.study().best()),
                    Stream.concat(each.study().ties().stream(), each.study().undecided().stream()))
                .toList();
        boolean holds = equals.contains(best);
        boolean holdsWithinNoise =
            equals.stream()
                .anyMatch(
                    tuning -> measured(truth, tuning) && truth.excess(tuning, best).low() <= 0);
        held += holds ? 1 : 0;
        heldWithinNoise += holdsWithinNoise ? 1 : 0;
        System.out.printf(
            "  %s, regret %.1f%% (%.1f to %.1f)%s, true best %s, %d rounds; %s%n",
            chosen,
            100 * regret,
            100 * interval.low(),
            100 * interval.high(),
            isSignificant ? "" : ", not significant",
            holds
                ? "among its equals"
                : holdsWithinNoise ? "as fast as one of its equals" : "MISSED",
            each.study().repeats(),
            each.searched());
      }
    }
    print("regret", regrets);
    print("significant regret", significant);
    System.out.printf(
        "true best among the equals in %d of %d, or as fast as one of them in %d%n",
        held, regrets.size(), heldWithinNoise);
  }

  private static void print(String name, List<Double> regrets) {
    regrets.sort(null);
    System.out.printf(
        "%s: median %.1f%%, p95 %.1f%%, largest %.1f%%%n",
        name,
        100 * regrets.get(regrets.size() / 2),
        100 * regrets.get((int) Math.ceil(0.95 * regrets.size()) - 1),
        100 * regrets.getLast());
  }

  private static boolean measured(Study<Overlap> study, Overlap tuning) {
    return tuning.equals(study.reference())
        || study.trials().stream().anyMatch(trial -> trial.configuration().equals(tuning));
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

  private static List<Tuning> all(GemmSpec spec) {
    var all = new AtomicReference<List<Tuning>>(List.of());
    LocalRanks.run(
        RANKS,
        Link.DEFAULT,
        world -> {
          var grid = new Grid(world, null);
          grid.whole();
          all.set(grid.possible(spec, true, new ArrayList<>()));
        });
    return Objects.requireNonNull(all.get());
  }

  private static Searched measure(GemmSpec spec, UnaryOperator<Tuner<Overlap>> options) {
    var study = new AtomicReference<Study<Overlap>>();
    var line = new AtomicReference<>("");
    LocalRanks.run(
        RANKS,
        Link.DEFAULT,
        world -> {
          world.context().outbox(new Kept(line));
          study.set(options.apply(Tuner.on(world).gemm(spec)).run());
        });
    return new Searched(
        Objects.requireNonNull(study.get()), Objects.requireNonNullElse(line.get(), ""));
  }

  /// Returns the tuning that takes least beside the reference in the same round.
  private static Overlap fastest(Study<Overlap> study) {
    return Stream.concat(
            Stream.of(study.reference()), study.trials().stream().map(Study.Trial::configuration))
        .min(Comparator.comparingDouble(each -> quotient(study, each, study.reference())))
        .orElseThrow();
  }

  /// Returns the median of the quotients of two tunings' times in the same round.
  private static double quotient(Study<Overlap> study, Overlap tuning, Overlap base) {
    var times = rounds(study, tuning);
    var others = rounds(study, base);
    var quotients =
        IntStream.range(0, times.size())
            .mapToDouble(round -> (double) times.get(round) / others.get(round))
            .sorted()
            .toArray();
    return quotients[quotients.length / 2];
  }

  private static List<Long> rounds(Study<Overlap> study, Overlap tuning) {
    return tuning.equals(study.reference())
        ? study.unfusedFirst()
        : study.trials().stream()
            .filter(trial -> trial.configuration().equals(tuning))
            .findFirst()
            .orElseThrow()
            .nanos();
  }

  private static double nanos(Study<Overlap> study, Overlap tuning) {
    return tuning.equals(study.reference())
        ? study.unfusedMedianNanos()
        : study.medianNanos(tuning);
  }
}
