package braid.schedule.plan;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Tuning;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Schedule;

/// Plans the schedules of problems with their built-in tunings.
public final class Planner {
  private Planner() {}

  /// Returns the schedule of a problem and its tuning.
  public static Schedule plan(Problem problem, Tuning tuning, int ranks) {
    return switch (problem) {
      case GemmSpec spec -> {
        var overlap = tuning.require(Overlap.class, spec);
        overlap.check(spec, ranks);
        yield GemmPlanner.plan(spec, overlap, ranks);
      }
      case AttentionSpec spec -> {
        var method = tuning.require(ContextParallel.class, spec);
        method.check(spec, ranks);
        yield method.headRanks(ranks) > 1
            ? new UlyssesPlanner(spec, method, ranks).plan()
            : new AttentionPlanner(spec, method, ranks).plan();
      }
      case AttentionGradientSpec spec -> {
        var method = tuning.require(ContextParallel.class, spec);
        method.checkGradient(spec.forward(), ranks);
        yield method.headRanks(ranks) > 1
            ? new UlyssesGradientPlanner(spec, method, ranks).plan()
            : new AttentionGradientPlanner(spec, method, ranks).plan();
      }
    };
  }

  /// Names the piece of communication or multiplication that produced a row of a part on a rank,
  /// for messages.
  public static String origin(Schedule schedule, Part part, int rank, long row) {
    return schedule.goal() instanceof Goal.Solution(GemmSpec spec, var tuning)
            && tuning.orElse(null) instanceof Overlap overlap
        ? GemmPlanner.origin(spec, overlap, schedule.ranks(), part, rank, row)
        : "row " + row;
  }
}
