package braid.launcher.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BackendKind;
import braid.model.BraidException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RankCountTest {
  private static final RankCount LAPTOP = with(2, 24_000, 0);

  private static RankCount with(int cores, long availableMiB, int gpus) {
    return new RankCount(cores, availableMiB, GpusTest.gpus(gpus));
  }

  @Test
  void isOneAGpuOrFourOnTheHost() {
    assertThat(with(64, 500_000, 8).byDefault(BackendKind.AUTO)).isEqualTo(8);
    assertThat(with(64, 500_000, 8).byDefault(BackendKind.CUDA)).isEqualTo(8);
    assertThat(with(64, 500_000, 8).byDefault(BackendKind.HOST)).isEqualTo(4);
    assertThat(LAPTOP.byDefault(BackendKind.AUTO)).isEqualTo(4);
    assertThat(with(2, 250, 0).byDefault(BackendKind.AUTO)).isEqualTo(2);
  }

  @Test
  void isBoundByCoresOrByMemory() {
    assertThat(LAPTOP.most()).isEqualTo(8);
    assertThat(with(2, 250, 0).most()).isEqualTo(2);
    assertThat(LAPTOP.parse("-n", " 8 ")).isEqualTo(8);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "-n|0|but was 0; try 4",
        "-n|-1|but was -1; try 4",
        "BRAID_RANKS|9|but was 9; try 8",
      })
  void tooManyRanksForTheMachineAreRefused(String subject, String text, String end) {
    assertThatThrownBy(() -> LAPTOP.parse(subject, text))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            subject
                + " must be 1..8 (at most 4 ranks per core of 2 cores, and 100 MiB per rank of 24000 MiB"
                + " available) "
                + end);
  }

  @Test
  void aRankCountThatIsNoNumberIsRefused() {
    assertThatThrownBy(() -> LAPTOP.parse("-n", "four"))
        .isInstanceOf(BraidException.class)
        .hasMessage("-n must be a number of ranks, 1..8, but was \"four\"; try 4");
  }

  @Test
  void seesThisMachine() {
    var here = RankCount.ofHost();
    assertThat(here.cores()).isEqualTo(Runtime.getRuntime().availableProcessors());
    assertThat(here.availableMiB()).isPositive();
    assertThat(here.most()).isPositive();
  }
}
