package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Decision;
import braid.evidence.Decisions;
import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.model.Auto;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Tuning;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AutoTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(48, 16, 8);
  private static final Auto QUICK = new Auto(Duration.ZERO);
  private static final Auto LONGER = new Auto(Duration.ofSeconds(4));

  /// Enough for whole batches on any machine.
  private static final Auto ENDLESS = new Auto(Duration.ofHours(1));

  private static Study<Overlap> study(long unfused, long split) {
    var problem = new LinkedHashMap<>(SPEC.columns());
    return new Study<>(
        problem,
        2,
        1,
        List.of(unfused, unfused + 1, unfused, unfused + 1, unfused, unfused),
        List.of(unfused, unfused, unfused + 1, unfused, unfused + 1, unfused),
        List.of(
            new Study.Trial<>(
                Overlap.pipelined(3), List.of(split, split, split + 1, split, split, split + 1))),
        Overlap.unfused());
  }

  private static AutoTuning automatic(ProcessGroup world, Path folder) {
    return new AutoTuning(world, SPEC, MemoryKind.NATIVE, Decisions.in(folder));
  }

  @Test
  void aKeptDecisionIsTakenByEveryRank(@TempDir Path folder) {
    LocalRanks.run(
        2,
        world -> {
          var decision = automatic(world, folder).decision(study(1_000_000, 700_000));
          assertThat(decision.tuning()).isEqualTo(Overlap.pipelined(3));
        });
    // Only the decision says three splits: a search tries 1, 2, 4, 8 and 16.
    var taken = new ConcurrentLinkedQueue<Tuning>();
    LocalRanks.run(2, world -> taken.add(automatic(world, folder).tuning(QUICK)));
    assertThat(taken).containsExactly(Overlap.pipelined(3), Overlap.pipelined(3));
  }

  @Test
  void unfusedIsTakenIfNoOverlapIsFaster(@TempDir Path folder) {
    LocalRanks.run(
        2,
        world -> {
          var decision = automatic(world, folder).decision(study(700_000, 1_000_000));
          assertThat(decision.tuning()).isEqualTo(Overlap.unfused());
          assertThat(decision.headline()).contains("take `unfused`");
          assertThat(automatic(world, folder).tuning(QUICK)).isEqualTo(Overlap.unfused());
        });
  }

  @Test
  void withoutADecisionAllRanksDecideAlike(@TempDir Path folder) {
    var taken = new ConcurrentLinkedQueue<Tuning>();
    LocalRanks.run(2, world -> taken.add(automatic(world, folder).tuning(QUICK)));
    assertThat(taken).hasSize(2).allMatch(taken.element()::equals);
    // So few rounds may leave it undecided; then unfused is taken, and nothing is kept.
    var kept = Decisions.in(folder).all();
    assertThat(kept.stream().<Tuning>map(Decision::tuning).findFirst().orElse(Overlap.unfused()))
        .isEqualTo(taken.element());
  }

  @Test
  void aDecisionNamesProblemMachineAndVersions(@TempDir Path folder) {
    LocalRanks.run(
        2,
        world -> {
          var _ = automatic(world, folder).decision(study(1_000_000, 700_000));
        });
    var kept = Decisions.in(folder).all().getFirst();
    assertThat(kept.problem()).isEqualTo(SPEC.toString());
    assertThat(kept.setting())
        .containsEntry("ranks", "2")
        .containsEntry("backend", "host")
        .containsEntry("memory", "native");
    assertThat(kept.versions()).containsKeys("braid", "java", "openblas");
  }

  @Test
  void anUndecidedStudyIsNotKept(@TempDir Path folder) {
    var wide = List.of(700_000L, 1_400_000L, 900_000L, 1_100_000L, 600_000L, 1_500_000L);
    var undecided =
        new Study<>(
            new LinkedHashMap<>(SPEC.columns()),
            2,
            1,
            wide,
            wide.reversed(),
            List.of(new Study.Trial<>(Overlap.pipelined(3), wide.reversed())),
            Overlap.unfused());
    LocalRanks.run(
        2,
        world -> {
          var decision = automatic(world, folder).decision(undecided);
          assertThat(decision.isCertain()).isFalse();
          assertThat(decision.tuning()).isEqualTo(Overlap.unfused());
        });
    assertThat(Decisions.in(folder).all()).isEmpty();
  }

  /// Times that no machine can reach, as those of a broken clock.
  @Test
  void impossibleTimesAreNotKept(@TempDir Path folder) {
    var columns = new LinkedHashMap<>(SPEC.columns());
    columns.put("backend", "host");
    columns.put("link", "1KB/s,20us");
    var times = List.of(1_000L, 1_000L, 1_000L, 1_000L, 1_000L, 1_000L);
    var impossible =
        new Study<>(
            columns,
            2,
            1,
            times,
            times,
            List.of(new Study.Trial<>(Overlap.pipelined(3), times)),
            Overlap.unfused());
    LocalRanks.run(
        2,
        world -> {
          assertThat(automatic(world, folder).tuning(impossible)).isEqualTo(Overlap.unfused());
          assertThatThrownBy(() -> automatic(world, folder).decision(impossible))
              .hasMessageStartingWith("IMPOSSIBLE_BANDWIDTH: unfused, ")
              .hasMessageContaining("nothing is decided by impossible times");
        });
    assertThat(Decisions.in(folder).all()).isEmpty();
  }

  @Test
  void aStaleDecisionIsMadeAgain(@TempDir Path folder) {
    LocalRanks.run(
        2,
        world -> {
          var _ = automatic(world, folder).decision(study(1_000_000, 700_000));
        });
    var decisions = Decisions.in(folder);
    var current = decisions.all().getFirst();
    var older = new LinkedHashMap<>(current.versions());
    older.put("openblas", "0.1");
    decisions.keep(new Decision(current.setting(), older, Instant.EPOCH, current.study()));
    assertThat(decisions.all().getFirst().stale(current.versions()).orElseThrow())
        .isEqualTo("openblas is %s and was 0.1".formatted(current.versions().get("openblas")));
    // A search never tries three splits.
    var taken = new ConcurrentLinkedQueue<Tuning>();
    LocalRanks.run(2, world -> taken.add(automatic(world, folder).tuning(QUICK)));
    assertThat(taken).hasSize(2).doesNotContain(Overlap.pipelined(3));
  }

  @Test
  void anInterruptedSearchGoesOn(@TempDir Path folder) throws Exception {
    var caller = Thread.currentThread();
    var bars = new AtomicInteger();
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      world
                          .context()
                          .outbox(
                              new Shown(
                                  line -> {
                                    // Of the second batch.
                                    boolean second =
                                        line.contains("searching 0/")
                                            && bars.incrementAndGet() == 2;
                                    if (second) {
                                      caller.interrupt();
                                    }
                                    while (second) {
                                      world.context().waits().check(() -> "the second batch");
                                      Thread.onSpinWait();
                                    }
                                  }));
                      var _ = automatic(world, folder).tuning(ENDLESS);
                    }))
        .hasStackTraceContaining("interrupted");
    assertThat(Thread.interrupted()).isTrue();
    assertThat(files(folder)).singleElement().asString().endsWith(".samples");
    var lines = new ConcurrentLinkedQueue<String>();
    var taken = new ConcurrentLinkedQueue<Tuning>();
    LocalRanks.run(
        2,
        world -> {
          world.context().outbox(new Shown(lines::add));
          taken.add(automatic(world, folder).tuning(LONGER));
        });
    // The first batch: six tunings, six rounds.
    assertThat(lines)
        .contains("the search goes on with 36 samples of an earlier one that did not end");
    assertThat(taken).hasSize(2).allMatch(taken.element()::equals);
    assertThat(files(folder)).noneMatch(file -> file.toString().endsWith(".samples"));
  }

  private static List<Path> files(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files.toList();
    }
  }

  /// Hands on the first text of each display.
  private record Shown(Consumer<String> reader) implements Outbox {
    @Override
    public void publish(MimeBundle bundle) {}

    @Override
    public void display(MimeBundle bundle, String displayId) {
      reader.accept(bundle.text());
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {}
  }

  @Test
  void oneRankTakesUnfusedAndKeepsNothing(@TempDir Path folder) {
    LocalRanks.run(
        1,
        world -> assertThat(automatic(world, folder).tuning(QUICK)).isEqualTo(Overlap.unfused()));
    assertThat(Decisions.in(folder).all()).isEmpty();
    LocalRanks.run(
        1,
        world ->
            assertThatThrownBy(() -> Tuner.on(world).gemm(SPEC).splits(2).repeats(6).decide())
                .hasMessage(
                    "a decision needs 2 or more ranks but group `world` has 1: one rank has nothing to communicate; try -n 4"));
  }

  @Test
  void decisionsAreListedShownAndForgotten(@TempDir Path folder) throws Exception {
    var decisions = Decisions.in(folder.resolve("none-yet"));
    assertThat(decisions.all()).isEmpty();
    assertThat(decisions).asString().startsWith("no decisions in ");
    var setting = new LinkedHashMap<String, String>();
    setting.put(Decision.PROBLEM, SPEC.toString());
    setting.put("ranks", "2");
    var versions = new LinkedHashMap<String, String>();
    versions.put("nccl", "2.28");
    var decision = new Decision(setting, versions, Instant.now(), study(1_000_000, 700_000));
    decisions.keep(decision);
    setting.put("ranks", "4");
    decisions.keep(new Decision(setting, versions, Instant.now(), study(1_000_000, 2_000_000)));
    assertThat(decisions.all()).hasSize(2).contains(decision);
    assertThat(decisions.table().stringColumn("tuning").asList())
        .containsExactly("pipelined, 3 splits", "unfused");
    assertThat(decisions.find(decision.setting())).contains(decision);
    assertThat(decision.display().text()).startsWith(decision.headline());
    assertThat(decisions.forget(decision)).isTrue();
    assertThat(decisions.forget(decision)).isFalse();
    assertThat(decisions.find(decision.setting())).isEmpty();
    try (var files = Files.list(folder.resolve("none-yet"))) {
      Files.writeString(files.findFirst().orElseThrow(), "{");
    }
    assertThatThrownBy(decisions::all)
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("the kept decision ")
        .hasMessageEndingWith("; delete the file, and it is decided again");
  }

  @Test
  void aPipelineRefusesAutoBesideAnotherTuning() {
    LocalRanks.run(
        2,
        world -> {
          var builder = Pipeline.on(world).gemm(SPEC).overlap(Overlap.auto());
          assertThatThrownBy(() -> builder.overlap(Overlap.ring()))
              .hasMessage("overlap was set already: auto, budget 10 s; set it once");
        });
    assertThatThrownBy(() -> Overlap.auto(Duration.ofSeconds(-1)))
        .hasMessage("budget must be 0 s..86400 s but was PT-1S; try auto(Duration.ofSeconds(10))");
  }

  @Test
  void aDecisionWithoutEvidenceIsRefused() {
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(
                    () ->
                        Tuner.on(world)
                            .steps("code")
                            .step("one", () -> {})
                            .step("two", () -> {})
                            .repeats(6)
                            .decide())
                .hasMessage(
                    "a decision is a tuning of a problem but the tuner has steps; call run(), or leave them out"));
  }
}
