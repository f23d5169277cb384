package braid.schedule;

import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.Optional;

/// The result that a schedule is for, as far as it is known: the check compares with it.
public sealed interface Goal {
  /// The unfused code of the problem.
  ///
  /// @param overlap the tuning that the schedule was planned by; empty for a user's own schedule
  record Gemm(GemmSpec spec, Optional<Overlap> overlap) implements Goal {
    @Override
    public String toString() {
      return overlap.map(how -> spec + ", " + how).orElseGet(spec::toString);
    }
  }

  /// A collective's result.
  ///
  /// @param root of a broadcast; 0 for others
  record Collected(Collective collective, int root) implements Goal {
    @Override
    public String toString() {
      return collective.toString();
    }
  }

  /// Nothing is known but that every output row is written.
  ///
  /// @param name of the schedule
  record Unstated(String name) implements Goal {
    @Override
    public String toString() {
      return name;
    }
  }
}
