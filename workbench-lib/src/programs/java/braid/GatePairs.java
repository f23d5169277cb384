package braid;

import braid.evidence.Comparison;
import braid.evidence.Comparison.Verdict;
import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MimeBundle;
import braid.model.Overlap;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;

/// Judges pairs of studies on real ranks: `GatePairs loaded|planted|quiet [PAIRS [SECONDS [STARTS
/// [DIRECTORY]]]]`, by default 100 pairs of studies that measure for 1.5 s, on 2 thread ranks of
/// the host backend. Of several starts, those of the two studies alternate and are pooled.
///
/// - `loaded`: the same code twice, one of the two beside processes that keep all cores busy. No
///   configuration may be called slower or faster.
/// - `planted`: one configuration of the second study has a larger problem, which takes 5% longer
///   by a measurement before. It must be called slower in at least 95 of 100, on a machine with
///   nothing else to do.
/// - `quiet`: the same code twice.
///
/// With a directory, the studies are kept there; `GatePairs judge DIRECTORY` judges them again, and
/// `GatePairs draw DIRECTORY STARTS` draws 100 times so many starts of each of the two from them,
/// and so many of the first twice: the same code.
public final class GatePairs {
  private static final int RANKS = 2;
  private static Duration budget = Duration.ofMillis(1_500);
  private static final int M = 640;
  private static final int PLANTED_M = 680;
  private static final String PLANTED = "4 splits";
  private static final double FOUND_AT_LEAST = 0.95;
  private static final int DRAWN = 100;

  private GatePairs() {}

  public static void main(String[] args) throws Exception {
    var subject = args.length > 0 ? args[0] : "loaded";
    if (subject.equals("judge")) {
      judge(Path.of(args[1]));
      return;
    }
    if (subject.equals("draw")) {
      draw(Path.of(args[1]), Integer.parseInt(args[2]));
      return;
    }
    int pairs = args.length > 1 ? Integer.parseInt(args[1]) : 100;
    if (args.length > 2) {
      budget = Duration.ofMillis(Math.round(1_000 * Double.parseDouble(args[2])));
    }
    int starts = args.length > 3 ? Integer.parseInt(args[3]) : 1;
    var directory = args.length > 4 ? Files.createDirectories(Path.of(args[4])) : null;
    measure(M);
    int planted = subject.startsWith("planted") ? PLANTED_M : M;
    var counts = new Counts();
    var random = new Random(1);
    for (int pair = 1; pair <= pairs; pair++) {
      var load = subject.equals("loaded") ? Load.drawn(random) : Load.NONE;
      boolean firstLoaded = random.nextBoolean();
      var ofFirst = new ArrayList<Study<?>>();
      var ofSecond = new ArrayList<Study<?>>();
      for (int start = 0; start < starts; start++) {
        ofFirst.add(loaded(firstLoaded ? load : Load.NONE, M));
        ofSecond.add(loaded(firstLoaded ? Load.NONE : load, planted));
      }
      var first = Comparison.pooled(ofFirst);
      var second = Comparison.pooled(ofSecond);
      if (directory != null) {
        Files.writeString(
            directory.resolve("%s-%03d-a.json".formatted(subject, pair)), first.toJson());
        Files.writeString(
            directory.resolve("%s-%03d-b.json".formatted(subject, pair)), second.toJson());
      }
      counts.add(
          "%d, %s%s".formatted(pair, load, firstLoaded ? " first" : " second"), first, second);
    }
    System.exit(counts.print(subject) ? 0 : 1);
  }

  private static void judge(Path directory) throws IOException {
    var counts = new Counts();
    var first = kept(directory, "-a.json");
    var second = kept(directory, "-b.json");
    for (int pair = 0; pair < first.size(); pair++) {
      counts.add(Integer.toString(pair + 1), first.get(pair), second.get(pair));
    }
    counts.print(directory.toString());
  }

  private static List<Study<?>> kept(Path directory, String ending) throws IOException {
    var studies = new ArrayList<Study<?>>();
    try (var files = Files.list(directory)) {
      for (var file : files.filter(f -> f.toString().endsWith(ending)).sorted().toList()) {
        studies.add(Study.fromJson(Files.readString(file)));
      }
    }
    return studies;
  }

  private static void draw(Path directory, int starts) throws IOException {
    var first = kept(directory, "-a.json");
    var second = kept(directory, "-b.json");
    var random = new Random(1);
    var planted = new Counts();
    var same = new Counts();
    for (int pair = 1; pair <= DRAWN; pair++) {
      Collections.shuffle(first, random);
      Collections.shuffle(second, random);
      var before = Comparison.pooled(first.subList(0, starts));
      planted.add(pair + ", planted", before, Comparison.pooled(second.subList(0, starts)));
      same.add(pair + ", same", before, Comparison.pooled(first.subList(starts, 2 * starts)));
    }
    planted.print("planted, %d starts".formatted(starts));
    same.print("same code, %d starts".formatted(starts));
  }

  /// Busy processes beside a study: steady, or half of the time.
  ///
  /// @param nicer steps by which they are nicer than the ranks, for a lighter load
  private record Load(int processes, boolean bursts, int nicer) {
    static final Load NONE = new Load(0, false, 0);

    static Load drawn(Random random) {
      int cores = Runtime.getRuntime().availableProcessors();
      return new Load(
          random.nextInt(3) == 0 ? Math.max(1, cores / 2) : cores,
          random.nextInt(4) == 0,
          3 * random.nextInt(5));
    }

    @Override
    public String toString() {
      return "%d busy%s%s"
          .formatted(
              processes, bursts ? " half of the time" : "", nicer > 0 ? ", nice " + nicer : "");
    }
  }

  private static Study<?> loaded(Load load, int m) throws IOException {
    var processes = new ArrayList<Process>();
    var loop =
        load.bursts()
            ? "while :; do timeout 0.1 sh -c 'while :; do :; done'; sleep 0.1; done"
            : "while :; do :; done";
    try {
      for (int i = 0; i < load.processes(); i++) {
        processes.add(
            new ProcessBuilder("nice", "-n", Integer.toString(load.nicer()), "sh", "-c", loop)
                .start());
      }
      return measure(m);
    } finally {
      processes.forEach(Process::destroyForcibly);
    }
  }

  private static Study<?> measure(int m) {
    var measured = new AtomicReference<Study<?>>();
    LocalRanks.run(
        RANKS,
        Link.DEFAULT,
        world -> {
          world.context().outbox(new Quiet());
          try (var unfused = pipeline(world, M, Overlap.unfused());
              var two = pipeline(world, M, Overlap.pipelined(2));
              var four = pipeline(world, m, Overlap.pipelined(4))) {
            measured.set(
                Tuner.on(world)
                    .steps("gate")
                    .step("unfused", unfused)
                    .step("2 splits", two)
                    .step(PLANTED, four)
                    .budget(budget)
                    .run());
          }
        });
    return Objects.requireNonNull(measured.get());
  }

  private static Pipeline pipeline(ProcessGroup world, int m, Overlap tuning) {
    return Pipeline.on(world).gemm(GemmSpec.allGatherGemm(m, 256, 256)).overlap(tuning).build();
  }

  /// Verdicts of all pairs.
  private static final class Counts {
    private final Map<Verdict, Integer> rows = new EnumMap<>(Verdict.class);
    private final Map<Verdict, Integer> pairs = new EnumMap<>(Verdict.class);
    private int all;
    private int plantedFound;
    private int claimsByTimes;
    private final List<Double> plantedShares = new ArrayList<>();
    private int claims;

    void add(String name, Study<?> first, Study<?> second) {
      var comparison = Comparison.of(first, second);
      all++;
      pairs.merge(comparison.verdict(), 1, Integer::sum);
      var words = new ArrayList<String>();
      boolean claimed = false;
      for (var row : comparison.rows()) {
        rows.merge(row.verdict(), 1, Integer::sum);
        boolean claim = List.of(Verdict.SLOW, Verdict.FAST).contains(row.verdict());
        claimed |= claim;
        if (row.configuration().equals(PLANTED)) {
          plantedShares.add(row.difference().value());
        }
        if (row.configuration().equals(PLANTED) && row.verdict() == Verdict.SLOW) {
          plantedFound++;
        }
        words.add(
            "%s %s %+.1f%%"
                .formatted(row.configuration(), row.verdict(), 100 * row.difference().value()));
      }
      claims += claimed ? 1 : 0;
      var byTimes = Comparison.ofTimes(first, second, Comparison.DEFAULT_THRESHOLD);
      claimsByTimes += byTimes.count(Verdict.SLOW) + byTimes.count(Verdict.FAST) > 0 ? 1 : 0;
      System.out.printf(
          "pair %s: %d and %d rounds, noise ±%.1f%%: %s%n",
          name,
          first.repeats(),
          second.repeats(),
          100 * comparison.noise(),
          String.join(", ", words));
    }

    /// Returns true if the goal is met.
    boolean print(String subject) {
      System.out.printf("%n| %s | pairs | rows |%n|---|---|---|%n", subject);
      for (var verdict : Verdict.values()) {
        System.out.printf(
            "| %s | %d | %d |%n",
            verdict, pairs.getOrDefault(verdict, 0), rows.getOrDefault(verdict, 0));
      }
      System.out.printf(
          "%d of %d pairs claim a difference, by times alone %d; `%s` is slower in %d, its median"
              + " difference is %+.1f%%%n",
          claims,
          all,
          claimsByTimes,
          PLANTED,
          plantedFound,
          100 * plantedShares.stream().sorted().toList().get(all / 2));
      return subject.startsWith("planted") ? plantedFound >= FOUND_AT_LEAST * all : claims == 0;
    }
  }

  /// Shows no progress.
  private static final class Quiet implements Outbox {
    @Override
    public void publish(MimeBundle bundle) {}

    @Override
    public void display(MimeBundle bundle, String displayId) {}

    @Override
    public void update(MimeBundle bundle, String displayId) {}
  }
}
