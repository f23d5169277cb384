package braid.schedule;

import braid.model.BraidException;
import braid.model.Collective;
import braid.model.Problem;
import braid.model.Tuning;
import java.util.Optional;

/// The result that a schedule must produce, as far as it is known; [Schedule#check] compares with
/// it.
public sealed interface Goal {
  /// The result of a problem's unfused code.
  ///
  /// @param tuning the tuning that the schedule was planned by; empty for a user's own schedule
  record Solution(Problem problem, Optional<Tuning> tuning) implements Goal {
    @Override
    public String toString() {
      return tuning.map(each -> problem + ", " + each).orElseGet(problem::toString);
    }
  }

  /// The result of a collective.
  ///
  /// @param root rank of a broadcast; 0 for other collectives
  record Collected(Collective collective, int root) implements Goal {
    /// @throws BraidException for a message, which is no collective of all ranks
    public Collected {
      if (collective.isMessage()) {
        throw new BraidException(
            "the goal of a schedule must be a collective of all ranks but was %s; name the schedule instead: Schedule.on(\"%s\", ranks)"
                .formatted(collective, collective));
      }
    }

    @Override
    public String toString() {
      return collective.toString();
    }
  }

  /// An unknown result: only checks that every output row is written.
  ///
  /// @param name name of the schedule
  record Unstated(String name) implements Goal {
    @Override
    public String toString() {
      return name;
    }
  }
}
