package braid.schedule;

import java.util.List;

/// Checks that a schedule is correct on every machine, whatever the speed of its ranks. Each check
/// assumes that the ones before it found nothing:
///
/// 1. [Wiring]: steps use declared names, in matching sizes; waits and signals match.
/// 2. [Order]: no ranks wait for each other.
/// 3. [Races]: steps that use the same rows are ordered, also across two iterations.
/// 4. [Flow]: every output row gets the value that the goal requires.
final class Check {
  private Check() {}

  /// Returns one line for each mistake.
  static List<String> findings(Schedule schedule) {
    var wiring = new Wiring(schedule);
    if (!wiring.findings().isEmpty()) {
      return List.copyOf(wiring.findings());
    }
    var order = new Order(wiring);
    if (order.deadlock().isPresent()) {
      return List.of(order.deadlock().get());
    }
    var races = new Races(wiring, order).findings();
    return races.isEmpty() ? new Flow(wiring, order).findings() : races;
  }
}
