package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.data.Offset.offset;

import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/// Two configurations of one study beside each other, on times with a drift that both have.
class StudyComparesTest {
  private static final Overlap TWO = Overlap.pipelined(4).streams(2);
  private static final Overlap FOUR = Overlap.pipelined(4).streams(4);
  private static final Overlap SLOW = Overlap.pipelined(8);

  private static List<Long> times(double factor) {
    return LongStream.range(0, 9)
        .map(round -> Math.round(factor * (1000 + 500 * round)))
        .boxed()
        .toList();
  }

  private final Study<Overlap> study =
      new Study<>(
          GemmSpec.gemmAllReduce(64, 64, 64).columns(),
          2,
          1,
          times(2),
          times(2),
          List.of(
              new Study.Trial<>(FOUR, times(1)),
              new Study.Trial<>(TWO, times(1)),
              new Study.Trial<>(SLOW, times(1.5))),
          Overlap.unfused());

  @Test
  void timesAreComparedWithinRounds() {
    var slower = study.excess(SLOW, TWO);
    assertThat(slower.value()).isCloseTo(0.5, offset(1e-9));
    assertThat(slower.low()).isCloseTo(0.5, offset(1e-9));
    assertThat(study.excess(TWO, Overlap.unfused()).value()).isCloseTo(-0.5, offset(1e-9));
    assertThat(study.excess(TWO, FOUR).value()).isCloseTo(0, offset(1e-9));
    assertThat(study.medianNanos(SLOW)).isEqualTo(4500);
    assertThat(study.medianNanos(Overlap.unfused())).isEqualTo(study.unfusedMedianNanos());
    assertThatThrownBy(() -> study.medianNanos(Overlap.ring()))
        .hasMessage(
            "a configuration must be one of this study's 3 but was ring, 1 split; study.trials() has all");
  }

  @Test
  void theSimplestOfEqualConfigurationsHasTheFewestStreams() {
    assertThat(study.best()).isIn(TWO, FOUR);
    assertThat(study.simplest()).isEqualTo(TWO);
  }
}
