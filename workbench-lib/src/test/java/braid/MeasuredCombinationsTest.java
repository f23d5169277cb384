package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.MeasuredCombinations.Errors;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/// Compares errors of predictions with recorded ones; no clock is read.
class MeasuredCombinationsTest {
  /// Times that the machine's simulation has, longer by a factor.
  private static MeasuredCombinations measured(double factor) {
    var machine = Machine.h200x8();
    var nanos =
        MeasuredCombinations.combinations(7, 16, 2, false).stream()
            .map(each -> Math.round(factor * each.simulatedNanos(machine, 2)))
            .toList();
    return new MeasuredCombinations(7, 2, nanos, machine);
  }

  @Test
  void aRecordIsReadAsItWasWritten() {
    var measured = measured(1.25);
    var text = measured.text();
    assertThat(MeasuredCombinations.parse(text)).isEqualTo(measured);
    var errors = MeasuredCombinations.recordedErrors(text);
    assertThat(errors)
        .containsEntry("all", 0.2)
        .containsKeys("dtype bf16", "pattern attention", "pattern all-gather-gemm")
        .hasSizeGreaterThan(8);
    assertThat(MeasuredCombinations.worsened(errors, measured.errors())).isEmpty();
  }

  @Test
  void aWorseSimulationFailsTheCheck() {
    var recorded = MeasuredCombinations.recordedErrors(measured(1.25).text());
    assertThat(MeasuredCombinations.worsened(recorded, measured(1.5).errors()))
        .hasSize(recorded.size())
        .contains("all: the median error must be at most 1.1 × 20.00% but was 33.33%");
  }

  @Test
  void anErrorMayGrowByATenth() {
    assertThat(worsened(List.of(1.054, 0.946))).isEmpty();
    assertThat(worsened(List.of(1.056, 0.944)))
        .containsExactly("all: the median error must be at most 1.1 × 5.00% but was 5.60%");
    assertThat(MeasuredCombinations.worsened(recorded(), new TreeMap<>()))
        .containsExactly("all: recorded but not measured; record again");
  }

  /// Times and machine are those of a run of `bench predictions` with this seed.
  @Test
  void recordedTimesArePredictedNoWorse() throws IOException {
    try (var file = MeasuredCombinationsTest.class.getResourceAsStream("/braid/predictions.txt")) {
      assertThat(file).isNotNull();
      var text = new String(file.readAllBytes(), StandardCharsets.UTF_8);
      var measured = MeasuredCombinations.parse(text);
      assertThat(measured.nanos()).hasSize(40);
      assertThat(
              MeasuredCombinations.worsened(
                  MeasuredCombinations.recordedErrors(text), measured.errors()))
          .isEmpty();
      var other = Machine.named("h200x8").with(Map.of("one copy at a time", "yes"));
      assertThat(
              MeasuredCombinations.worsened(
                  MeasuredCombinations.recordedErrors(text), measured.predictedOn(other).errors()))
          .isNotEmpty();
    }
  }

  private static SortedMap<String, Double> recorded() {
    return new TreeMap<>(Map.of("all", 0.05));
  }

  private static List<String> worsened(List<Double> ratios) {
    return MeasuredCombinations.worsened(
        recorded(), new TreeMap<>(Map.of("all", Errors.of(ratios))));
  }
}
