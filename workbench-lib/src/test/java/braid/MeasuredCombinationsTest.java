package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.MeasuredCombinations.Errors;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/// Simulates recorded combinations on the machine that was calibrated beside them; no clock is
/// read.
class MeasuredCombinationsTest {
  private static String recorded() throws IOException {
    try (var text =
        MeasuredCombinationsTest.class.getResourceAsStream("/braid/simulator_accuracy.txt")) {
      assertThat(text).isNotNull();
      return new String(text.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  @Test
  void noPartitionIsPredictedWorseThanRecorded() throws IOException {
    var text = recorded();
    var measured = MeasuredCombinations.parse(text);
    assertThat(measured.nanos()).hasSize(40);
    var errors = MeasuredCombinations.recordedErrors(text);
    assertThat(errors).hasSizeGreaterThan(10).containsKey("all");
    assertThat(MeasuredCombinations.worsened(errors, measured.errors())).isEmpty();
    assertThat(MeasuredCombinations.parse(measured.text())).isEqualTo(measured);
  }

  /// Multiplications whose sizes are those of a combination would be no prediction.
  @Test
  void noCombinationHasMeasuredColumnsAndDepth() throws IOException {
    var measured = MeasuredCombinations.parse(recorded());
    for (var rates : measured.machine().compute().gemm().values()) {
      assertThat(measured.combinations())
          .allSatisfy(
              each -> {
                var operation = each.localGemm(measured.ranks());
                assertThat(
                        rates.columns().contains(operation.columns())
                            && rates.depths().contains(operation.depth()))
                    .isFalse();
              });
    }
  }

  @Test
  void aSlowerMachineFailsTheCheck() throws IOException {
    var text = recorded();
    var measured = MeasuredCombinations.parse(text);
    var slower =
        new MeasuredCombinations(
            measured.seed(),
            measured.ranks(),
            measured.nanos().stream().map(nanos -> nanos * 3 / 2).toList(),
            measured.machine());
    assertThat(
            MeasuredCombinations.worsened(
                MeasuredCombinations.recordedErrors(text), slower.errors()))
        .anySatisfy(line -> assertThat(line).startsWith("all: the median error must be at most"));
  }

  @Test
  void anErrorMayGrowByATenth() {
    var recorded = new TreeMap<>(java.util.Map.of("all", 0.05));
    assertThat(worsened(recorded, List.of(1.054, 0.946))).isEmpty();
    assertThat(worsened(recorded, List.of(1.056, 0.944)))
        .containsExactly("all: the median error must be at most 1.1 × 5.00% but was 5.60%");
    assertThat(MeasuredCombinations.worsened(recorded, new TreeMap<>()))
        .containsExactly("all: recorded but not measured; record again");
  }

  private static List<String> worsened(TreeMap<String, Double> recorded, List<Double> ratios) {
    return MeasuredCombinations.worsened(
        recorded, new TreeMap<>(java.util.Map.of("all", Errors.of(ratios))));
  }
}
