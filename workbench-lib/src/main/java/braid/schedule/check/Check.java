package braid.schedule.check;

import braid.schedule.Schedule;
import java.util.List;

/// Checks that a schedule is correct on every machine, whatever the speed of its ranks. Each check
/// assumes that the ones before it found nothing:
///
/// 1. [Declarations]: steps use declared names, in matching sizes.
/// 2. [Wiring]: waits and signals match.
/// 3. [Order]: no ranks wait for each other.
/// 4. [Races]: steps that use the same rows are ordered, also across two iterations.
/// 5. [Flow]: every output row gets the value that the goal requires.
public final class Check {
  private Check() {}

  /// Returns one line for each mistake.
  public static List<String> findings(Schedule schedule) {
    return new Findings(mistakes(schedule), schedule.ranks());
  }

  private static List<String> mistakes(Schedule schedule) {
    var wiring = new Wiring(schedule);
    var declared = new Declarations(wiring).findings();
    if (!declared.isEmpty()) {
      return declared;
    }
    var unmatched = wiring.match();
    if (!unmatched.isEmpty()) {
      return unmatched;
    }
    var order = new Order(wiring);
    if (order.deadlock().isPresent()) {
      return List.of(order.deadlock().get());
    }
    var races = new Races(wiring, order).findings();
    return races.isEmpty() ? new Flow(wiring, order).findings() : races;
  }
}
