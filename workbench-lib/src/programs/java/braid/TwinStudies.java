package braid;

import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.model.ChunkOrder;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MimeBundle;
import braid.model.Overlap;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/// Counts studies on real ranks that call one of equal configurations better, which must be at most
/// 5%: `TwinStudies [STUDIES [BUDGET_MILLIS [M]]]`, by default 100 studies on 2 thread ranks of the
/// host backend with 1 s each. Exits with 1 if there are more.
///
/// The twins do the same work under different settings: even boundaries are the default, and of two
/// ranks the next one is the previous one. Every study is judged twice: as measured, and with two
/// of the twins in place of the unfused reference, so that any configuration that beats the
/// reference is a wrong verdict too.
public final class TwinStudies {
  private static final int RANKS = 2;
  private static final int CHUNKS = 4;

  private TwinStudies() {}

  public static void main(String[] args) {
    int studies = args.length > 0 ? Integer.parseInt(args[0]) : 100;
    var budget = Duration.ofMillis(args.length > 1 ? Long.parseLong(args[1]) : 1_000);
    int m = args.length > 2 ? Integer.parseInt(args[2]) : 512;
    var twins = twins(m / RANKS);
    int preferred = 0;
    int beatTwin = 0;
    for (int study = 1; study <= studies; study++) {
      var measured = measure(m, twins, budget);
      boolean prefers = prefers(measured);
      boolean beats = beatsTwin(measured);
      preferred += prefers ? 1 : 0;
      beatTwin += beats ? 1 : 0;
      System.out.printf(
          "study %d: %d rounds, known to ±%.1f%%%s%s%n",
          study,
          measured.repeats(),
          100 * measured.precision(),
          prefers ? ", WRONG: prefers one of equals" : "",
          beats ? ", WRONG: beats a reference that is its twin" : "");
    }
    System.out.printf(
        "%d of %d studies prefer one of %d equal configurations (%.1f%%)%n",
        preferred, studies, twins.size(), 100.0 * preferred / studies);
    System.out.printf(
        "%d of %d do so beside a reference that is their twin (%.1f%%)%n",
        beatTwin, studies, 100.0 * beatTwin / studies);
    System.exit(Math.max(preferred, beatTwin) > studies / 20 ? 1 : 0);
  }

  private static List<Overlap> twins(int rows) {
    var even = new int[CHUNKS + 1];
    for (int chunk = 0; chunk <= CHUNKS; chunk++) {
      even[chunk] = rows * chunk / CHUNKS;
    }
    var twins = List.of(Overlap.pipelined(CHUNKS), Overlap.pipelined(CHUNKS).boundaries(even));
    return Stream.of(ChunkOrder.NEXT_FIRST, ChunkOrder.PREVIOUS_FIRST)
        .flatMap(order -> twins.stream().map(twin -> twin.order(order)))
        .toList();
  }

  private static Study<Overlap> measure(int m, List<Overlap> twins, Duration budget) {
    var measured = new AtomicReference<Study<Overlap>>();
    LocalRanks.run(
        RANKS,
        Link.DEFAULT,
        world -> {
          world.context().outbox(new Quiet());
          var tuner = Tuner.on(world).gemm(GemmSpec.allGatherGemm(m, 256, 256));
          measured.set(tuner.overlaps(twins.toArray(Overlap[]::new)).budget(budget).run());
        });
    return Objects.requireNonNull(measured.get());
  }

  /// All may be slower than unfused, or one of them the best with all others tied.
  private static boolean prefers(Study<Overlap> study) {
    int ties = study.ties().size() + study.undecided().size();
    int all = study.trials().size();
    return study.best().equals(Overlap.unfused()) ? ties > 0 && ties < all : ties < all - 1;
  }

  private static boolean beatsTwin(Study<Overlap> study) {
    var twins = study.trials();
    var among =
        new Study<>(
            study.problem(),
            study.ranks(),
            study.seed(),
            twins.get(0).nanos(),
            twins.get(1).nanos(),
            twins.subList(2, twins.size()),
            Overlap.unfused());
    return !among.best().equals(Overlap.unfused())
        || among.ties().size() + among.undecided().size() < among.trials().size();
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
