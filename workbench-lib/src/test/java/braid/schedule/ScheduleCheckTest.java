package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import java.util.ArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Every planned schedule passes the check.
@Execution(ExecutionMode.CONCURRENT)
final class ScheduleCheckTest {
  static Stream<ScheduleCases.Way> ways() {
    return ScheduleCases.ways().stream();
  }

  @ParameterizedTest
  @MethodSource("ways")
  void plannedSchedulesHaveNoMistake(ScheduleCases.Way way) {
    var found = new ArrayList<String>();
    for (int ranks : ScheduleCases.ranks()) {
      for (var each : Sweep.oneOf(6, way.cases(ranks))) {
        each.schedule().findings().forEach(line -> found.add(each + ": " + line));
      }
    }
    assertThat(found.stream().limit(20)).as("%d findings", found.size()).isEmpty();
  }
}
