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
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;

/// Judges pairs of studies on real ranks: `GatePairs loaded|planted|quiet [PAIRS [SECONDS
/// [DIRECTORY]]]`, by default 100 pairs of studies that measure for 1.5 s, on 2 thread ranks of the
/// host backend.
///
/// - `loaded`: the same code twice, one of the two beside processes that keep all cores busy. No
///   configuration may be called slower or faster.
/// - `planted`: one configuration of the second study has a larger problem, which takes 5% longer
///   by a measurement before. It must be called slower in at least 95 of 100, on a machine with
///   nothing else to do.
/// - `quiet`: the same code twice.
///
/// With a directory, the studies are kept there; `GatePairs judge DIRECTORY` judges them again.
public final class GatePairs {
  private static final int RANKS = 2;
  private static Duration budget = Duration.ofMillis(1_500);
  private static final int M = 640;
  private static final int PLANTED_M = 680;
  private static final String PLANTED = "4 splits";
  private static final double FOUND_AT_LEAST = 0.95;

  private GatePairs() {}

  public static void main(String[] args) throws Exception {
    var subject = args.length > 0 ? args[0] : "loaded";
    if (subject.equals("judge")) {
      judge(Path.of(args[1]));
      return;
    }
    int pairs = args.length > 1 ? Integer.parseInt(args[1]) : 100;
    if (args.length > 2) {
      budget = Duration.ofMillis(Math.round(1_000 * Double.parseDouble(args[2])));
    }
    var directory = args.length > 3 ? Files.createDirectories(Path.of(args[3])) : null;
    measure(M);
    int planted = subject.equals("planted") ? PLANTED_M : M;
    var counts = new Counts();
    var random = new Random(1);
    for (int pair = 1; pair <= pairs; pair++) {
      var load = subject.equals("loaded") ? Load.drawn(random) : Load.NONE;
      boolean firstLoaded = random.nextBoolean();
      var first = loaded(firstLoaded ? load : Load.NONE, M);
      var second = loaded(firstLoaded ? Load.NONE : load, planted);
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
    try (var files = Files.list(directory)) {
      for (var a : files.filter(f -> f.toString().endsWith("-a.json")).sorted().toList()) {
        var b = Path.of(a.toString().replace("-a.json", "-b.json"));
        counts.add(
            a.getFileName().toString(),
            Study.fromJson(Files.readString(a)),
            Study.fromJson(Files.readString(b)));
      }
    }
    counts.print(directory.toString());
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
      return subject.equals("planted") ? plantedFound >= FOUND_AT_LEAST * all : claims == 0;
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
