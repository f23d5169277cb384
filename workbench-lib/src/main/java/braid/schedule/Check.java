package braid.schedule;

import java.util.List;

/// Holds a schedule to what makes it right on every machine, whatever the speed of its ranks. Each
/// part takes for granted that those before it found nothing:
///
/// 1. [Wiring]: steps use what is declared, in sizes that fit; waits and signals match.
/// 2. [Order]: no ranks wait for each other.
/// 3. [Races]: steps that use the same rows are ordered, also across two iterations.
/// 4. [Flow]: every output row gets the value that the goal asks for.
final class Check {
  private Check() {}

  /// One line for each mistake.
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
