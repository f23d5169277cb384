package braid.shapes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LengthsTest {
  @Test
  void lengthsBecomePackedAttention() {
    var spec = Lengths.of(5, 7, 1).attention(4, 8);
    assertThat(spec.sequence()).isEqualTo(13);
    assertThat(spec.packing().cumulative()).containsExactly(0, 5, 12, 13);
    assertThat(Lengths.cumulative(0, 5, 5, 12, 13)).isEqualTo(Lengths.of(5, 7, 1));
  }

  @Test
  void filesHoldNumbersOrArrays(@TempDir Path home) throws IOException {
    var file = home.resolve("lengths");
    for (var text : List.of("5 7 1", "5,7,1\n", "[5, 7,\n 1]", "\n5\n7\n1\n")) {
      Files.writeString(file, text);
      assertThat(Lengths.of(file)).as(text).isEqualTo(Lengths.of(5, 7, 1));
    }
    Files.writeString(file, "5 seven");
    refused(
        () -> Lengths.of(file),
        file + " must have whole numbers between spaces, commas or brackets but has `seven`");
    Files.writeString(file, "");
    refused(
        () -> Lengths.of(file),
        "lengths must be 1 or more but there are none; give one per sequence");
    assertThatThrownBy(() -> Lengths.of(home.resolve("none")))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("lengths must be in a text file but");
  }

  private static void refused(Runnable call, String message) {
    assertThatThrownBy(call::run).isInstanceOf(BraidException.class).hasMessage(message);
  }

  @Test
  void badLengthsAreRefused() {
    refused(
        () -> Lengths.of(5, 0),
        "each length must be 1 or more tokens but number 1 is 0; leave empty sequences out");
    refused(
        () -> Lengths.of(Integer.MAX_VALUE, 1),
        "lengths must add up to less than 2^31 tokens but are 2147483648; give those of one batch");
    refused(
        () -> Lengths.cumulative(0, 5, 3),
        "cumulative lengths must begin at 0 and not fall but were [0, 5, 3]; for example 0, 5, 12");
    refused(
        () -> Lengths.logNormal(10, 0, 1, 7),
        "total and median must be 1 or more and sigma 0 or more but were 10, 0.0 and 1.0; try logNormal(32768, 800, 1.0, 7)");
  }

  /// Half of all lengths are below the median, and a sixth above it times e^sigma.
  @Test
  void drawnLengthsHaveTheStatedDistribution() {
    var drawn = Lengths.logNormal(2_000_000, 400, 0.8, 3);
    assertThat(drawn.total()).isEqualTo(2_000_000);
    double count = drawn.tokens().size();
    assertThat(drawn.tokens().stream().filter(each -> each <= 400).count() / count)
        .isCloseTo(0.5, within(0.03));
    assertThat(drawn.tokens().stream().filter(each -> each > 400 * Math.exp(0.8)).count() / count)
        .isCloseTo(0.159, within(0.03));
    assertThat(drawn).isEqualTo(Lengths.logNormal(2_000_000, 400, 0.8, 3));
    assertThat(drawn).isNotEqualTo(Lengths.logNormal(2_000_000, 400, 0.8, 4));
  }
}
