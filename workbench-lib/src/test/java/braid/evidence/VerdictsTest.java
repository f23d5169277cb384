package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Overlap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The words of a verdict: best, better, equal, slower, undecided.
class VerdictsTest {
  private static final int ROUNDS = 14;

  /// Returns times around a median that spread evenly by the share on either side, in an order that
  /// the key shuffles.
  private static List<Long> times(double millis, double spread, int key) {
    return IntStream.range(0, ROUNDS)
        .map(round -> (round * key + 5) % ROUNDS)
        .mapToObj(
            index -> Math.round(1e6 * millis * (1 + spread * (2.0 * index / (ROUNDS - 1) - 1))))
        .toList();
  }

  /// Returns times of which every other one is the first; their median is in the middle.
  private static List<Long> either(double millis, double orMillis) {
    return IntStream.range(0, ROUNDS)
        .mapToObj(round -> Math.round(1e6 * (round % 2 == 0 ? millis : orMillis)))
        .toList();
  }

  private static Study<Overlap> study(long measuredNanos, List<List<Long>> times) {
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (int i = 0; i < times.size(); i++) {
      trials.add(new Study.Trial<>(Overlap.pipelined(1 << i), times.get(i)));
    }
    return new Study<>(
        new LinkedHashMap<>(),
        4,
        1,
        times(100, 0.002, 1),
        times(100, 0.002, 3),
        trials,
        List.of(),
        Overlap.unfused(),
        Optional.empty(),
        measuredNanos,
        List.of(),
        List.of(),
        Optional.empty());
  }

  private static List<String> verdicts(Study<Overlap> study) {
    return study.table().stringColumn("verdict").asList();
  }

  @Test
  void everyConfigurationHasAWord() {
    var study =
        study(
            0,
            List.of(
                times(80, 0.002, 3),
                times(80.1, 0.002, 5),
                times(85, 0.002, 9),
                times(81, 0.07, 11),
                times(100, 0.002, 13),
                times(120, 0.002, 3),
                times(105, 0.8, 5)));
    assertThat(verdicts(study))
        .containsExactly(
            "reference",
            "best",
            "better, equal to best",
            "better",
            "better, perhaps best",
            "equal within ±3.0%",
            "slower",
            "undecided");
    assertThat(study.ties()).containsExactly(Overlap.pipelined(2));
    assertThat(study.undecided()).containsExactly(Overlap.pipelined(8), Overlap.pipelined(64));
    assertThat(study.headline())
        .startsWith("1 split: 80.0 ms, 20.0% less than unfused's 100 ms (")
        .contains("; equal within ±3.0%: 2 splits; undecided: 8 splits, 64 splits; about ")
        .contains(" rounds would decide between 8 splits and 1 split, and 14 were measured;");
  }

  /// Reported case: "no overlap beats unfused" beside intervals of −44 to 0%.
  @Test
  void aWideIntervalIsNotSaidToLose() {
    var study = study(7_000_000_000L, List.of(either(60, 104), times(120, 0.002, 5)));
    assertThat(study.best()).isEqualTo(Overlap.unfused());
    assertThat(verdicts(study)).containsExactly("reference", "undecided", "slower");
    assertThat(study.headline())
        .matches(
            "undecided: 1 split may take 18% less time than unfused \\(interval −40 to \\+4%;"
                + " 82\\.0 ms and 100 ms; noise ±0\\.\\d%\\); of 2 overlaps 1 undecided, 1 slower;"
                + " about \\d+ rounds \\(\\d+ s\\) would decide between 1 split and unfused, and 14"
                + " were measured; raise the budget, or call braid run --until-decided \\dm")
        .doesNotContain("beats");
    assertThat(study.finding())
        .isEqualTo("Undecided: 1 split may take 18% less time than unfused (interval −40 to +4%)");
  }

  @Test
  void nothingBeatsTheReferenceOnlyIfAllAreDecided() {
    var study = study(0, List.of(times(100.1, 0.002, 3), times(120, 0.002, 5)));
    assertThat(verdicts(study)).containsExactly("reference, best", "equal within ±3.0%", "slower");
    assertThat(study.headline())
        .startsWith("no overlap beats unfused (100 ms): 1 equal within ±3.0%, 1 slower; noise ±0.");
    assertThat(study.ties()).containsExactly(Overlap.pipelined(1));
    assertThat(study.advice()).isEmpty();
  }

  /// The time that would decide is that of the rounds that would.
  @Test
  void secondsThatWouldDecideFollowFromRounds() {
    var advice = study(14_000_000_000L, List.of(either(60, 104))).advice().orElseThrow();
    var rounds = advice.replaceAll("^about (\\d+) rounds \\(.*", "$1");
    assertThat(advice).startsWith("about %s rounds (%s s) would decide".formatted(rounds, rounds));
    assertThat(Integer.parseInt(rounds)).isGreaterThan(ROUNDS);
  }

  /// Names have commas themselves.
  @Test
  void namesOfAListAreToldApart() {
    var study =
        new Study<>(
            new LinkedHashMap<>(),
            4,
            1,
            times(100, 0.002, 1),
            times(100, 0.002, 3),
            List.of(
                new Study.Trial<>(Overlap.pipelined(2), times(80, 0.002, 3)),
                new Study.Trial<>(Overlap.ring(2).replay(), times(81, 0.07, 11)),
                new Study.Trial<>(Overlap.direct(4), times(105, 0.8, 5))),
            Overlap.unfused());
    assertThat(study.headline())
        .contains("; undecided: (ring, 2 splits, replayed), (direct, 4 splits); about ");
  }

  /// Nobody waits for hours: another machine, or the same without other processes, is the remedy.
  @Test
  void manyHoursAreNoRemedy() {
    assertThat(study(14_000_000_000_000L, List.of(either(60, 104))).advice().orElseThrow())
        .endsWith("were measured; quiet the machine");
  }
}
