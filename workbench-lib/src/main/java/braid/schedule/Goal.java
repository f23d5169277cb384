package braid.schedule;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.Optional;

/// The result that a schedule must produce, as far as it is known; [Schedule#check] compares with
/// it.
public sealed interface Goal {
  /// The result of the problem's unfused code.
  ///
  /// @param overlap the tuning that the schedule was planned by; empty for a user's own schedule
  record Gemm(GemmSpec spec, Optional<Overlap> overlap) implements Goal {
    @Override
    public String toString() {
      return overlap.map(tuning -> spec + ", " + tuning).orElseGet(spec::toString);
    }
  }

  /// Attention over a divided sequence.
  record Attention(AttentionSpec spec, ContextParallel how) implements Goal {
    @Override
    public String toString() {
      return "%s, %s".formatted(spec, how);
    }
  }

  /// The gradients of attention over a divided sequence.
  record AttentionGradient(AttentionGradientSpec spec, ContextParallel how) implements Goal {
    @Override
    public String toString() {
      return "%s, %s".formatted(spec, how);
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
