package braid.schedule.check;

import braid.schedule.Schedule;
import java.util.ArrayList;
import java.util.List;

/// Checks that a schedule is correct on every machine, whatever the speed of its ranks:
///
/// 1. [Declarations]: steps use declared names, in matching sizes.
/// 2. [Wiring]: waits and signals match.
/// 3. [Order]: no ranks wait for each other.
/// 4. [Races]: steps that use the same rows are ordered, also across two iterations. [Causes] finds
///    what they follow from.
/// 5. [Flow]: every output row gets the value that the goal requires.
///
/// Mistakes of all kinds are reported together, but not what follows from another mistake. Each
/// part goes on after a mistake as if the advice had been followed, or leaves out what it cannot
/// know:
///
/// - A step with a mistake in its regions takes part in no race, and writes unknown values.
/// - A wait without a signal is followed by no race with the rank that should raise it; other steps
///   of that lane are compared as usual. The same holds for a signal without a wait.
/// - Steps that wait for each other count as ordered, in both directions. Steps without an order
///   even so are a race however the deadlock is resolved.
/// - What takes part in a race or a deadlock writes unknown values. An output that depends on an
///   unknown value is not compared; others are.
///
/// Without regions of ports no output is known, and the last part is left out.
public final class Check {
  private Check() {}

  /// Returns one line for each kind of mistake, which counts the places.
  public static List<String> findings(Schedule schedule) {
    var wiring = new Wiring(schedule);
    var declared = new Declarations(wiring);
    var findings = new ArrayList<>(declared.findings());
    findings.addAll(wiring.match());
    var order = new Order(wiring);
    var races = new Races(wiring, declared, order);
    findings.addAll(new Causes(wiring, order, races).findings());
    if (declared.portsFit()) {
      findings.addAll(new Flow(wiring, declared, order, races).findings());
    }
    return new Findings(findings, schedule.ranks());
  }
}
