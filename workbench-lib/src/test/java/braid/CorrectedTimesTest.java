package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import braid.model.Overlap;
import braid.model.Transport;
import braid.model.Tuning;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CorrectedTimesTest {
  private static final Tuning ONE = Overlap.pipelined(1);
  private static final Tuning SIXTEEN = Overlap.pipelined(16);

  private static CorrectedTimes corrected(Map<Tuning, Double> measured) {
    return new CorrectedTimes(_ -> 1.0, new LinkedHashMap<>(measured));
  }

  private static double ratio(CorrectedTimes corrected, Tuning tuning) {
    return Math.exp(corrected.expected(tuning).log());
  }

  @Test
  void aCommonErrorCorrectsAllTunings() {
    var measured = new LinkedHashMap<Tuning, Double>();
    measured.put(ONE, 1.3);
    measured.put(Overlap.ring(4), 1.3);
    measured.put(Overlap.direct(2).over(Transport.WORKERS), 1.3);
    var corrected = corrected(measured);
    assertThat(ratio(corrected, SIXTEEN)).isCloseTo(1.3, within(1e-9));
    assertThat(corrected.error()).isCloseTo(0, within(1e-9));
  }

  @Test
  void nearSplitCountsCorrectMost() {
    var measured = new LinkedHashMap<Tuning, Double>();
    measured.put(ONE, 1.0);
    measured.put(SIXTEEN, 2.0);
    var corrected = corrected(measured);
    double two = ratio(corrected, Overlap.pipelined(2));
    double four = ratio(corrected, Overlap.pipelined(4));
    double eight = ratio(corrected, Overlap.pipelined(8));
    assertThat(two).isBetween(1.0, four);
    assertThat(four).isCloseTo(Math.sqrt(2), within(1e-9));
    assertThat(eight).isBetween(four, 2.0);
    assertThat(corrected.expected(Overlap.ring(2)).deviation())
        .isGreaterThan(corrected.expected(Overlap.pipelined(2)).deviation());
  }

  @Test
  void twoMeasuredTimesAgreeWithTheClosedForm() {
    var measured = new LinkedHashMap<Tuning, Double>();
    measured.put(ONE, 1.1);
    measured.put(SIXTEEN, 1.5);
    double a = Math.log(1.1);
    double b = Math.log(1.5);
    // Four doublings apart; the wanted one is one from the first and three from the second.
    double between = Math.pow(0.75, 4);
    double first = 0.75;
    double second = Math.pow(0.75, 3);
    double own = 1.15;
    double mean = (a + b) / 2;
    double determinant = own * own - between * between;
    double expected =
        mean
            + (first * (own * (a - mean) - between * (b - mean))
                    + second * (own * (b - mean) - between * (a - mean)))
                / determinant;
    double known =
        (own * (first * first + second * second) - 2 * between * first * second) / determinant;
    double squares =
        2 * 0.05 * 0.05
            + (own * ((a - mean) * (a - mean) + (b - mean) * (b - mean))
                    - 2 * between * (a - mean) * (b - mean))
                / determinant;
    var found = corrected(measured).expected(Overlap.pipelined(2));
    assertThat(found.log()).isCloseTo(expected, within(1e-12));
    assertThat(found.deviation())
        .isCloseTo(Math.sqrt(squares / 4) * Math.sqrt(own - known), within(1e-12));
  }
}
