package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.report.json.ReadingsJson;
import braid.model.BraidException;
import braid.model.HardwareReading;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class HardwareReadingTest {
  private static final HardwareReading COOL = new HardwareReading(1980, 400, 45, Set.of());
  private static final HardwareReading HOT =
      new HardwareReading(1755, 690, 82, Set.of("power cap"));

  @Test
  void allGpusTogetherAreAsSlowAsTheirSlowest() {
    var third = new HardwareReading(1905, HardwareReading.UNKNOWN, 50, Set.of("sync boost"));
    assertThat(
            HardwareReading.together(
                List.of(List.of(COOL, COOL), List.of(COOL, HOT), List.of(COOL, third))))
        .containsExactly(
            COOL, new HardwareReading(1755, 690, 82, Set.of("power cap", "sync boost")));
  }

  @Test
  void anUnknownReadingDoesNotHideAnotherGpus() {
    assertThat(HardwareReading.together(List.of(List.of(HardwareReading.NONE), List.of(HOT))))
        .containsExactly(HOT);
    assertThat(
            HardwareReading.together(
                List.of(List.of(HardwareReading.NONE), List.of(HardwareReading.NONE))))
        .containsExactly(HardwareReading.NONE);
  }

  @Test
  void ranksTellEachOtherAllOfIt() {
    var all =
        List.of(
            COOL,
            HOT,
            HardwareReading.NONE,
            new HardwareReading(0, HardwareReading.UNKNOWN, 7, Set.of("b", "a")));
    LocalRanks.run(
        2,
        world ->
            assertThat(world.gather(ReadingsJson.write(all)))
                .allMatch(json -> ReadingsJson.read(json).equals(all)));
    assertThat(ReadingsJson.read(ReadingsJson.write(List.of()))).isEmpty();
  }

  @Test
  void aNumberIsKnownOrIsNot() {
    assertThatThrownBy(() -> new HardwareReading(-2, 1, 1, Set.of()))
        .isInstanceOf(BraidException.class)
        .hasMessage("a reading's SM clock in MHz must be 0 or more, or -1 for unknown, but was -2");
  }
}
