package braid.internal.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class RunTest {
  @Test
  void evenlySpacedSlicesOfOneLengthAreOneRun() {
    assertThat(Run.of(List.of(new Slice(24, 2), new Slice(8, 2), new Slice(16, 2))))
        .containsExactly(new Run(new Slice(8, 2), 3, 8));
  }

  @Test
  void aGapOrAnotherLengthBeginsAnother() {
    assertThat(Run.of(List.of(new Slice(0, 2), new Slice(8, 2), new Slice(24, 2))))
        .containsExactly(new Run(new Slice(0, 2), 2, 8), new Run(new Slice(24, 2), 1, 0));
    assertThat(Run.of(List.of(new Slice(0, 3), new Slice(8, 2), new Slice(16, 2))))
        .containsExactly(new Run(new Slice(0, 3), 1, 0), new Run(new Slice(8, 2), 2, 8));
  }

  @Test
  void whatIsEmptyIsLeftOut() {
    assertThat(Run.of(List.of(new Slice(3, 0), new Slice(5, 1))))
        .containsExactly(new Run(new Slice(5, 1), 1, 0));
    assertThat(Run.of(List.of())).isEmpty();
  }
}
