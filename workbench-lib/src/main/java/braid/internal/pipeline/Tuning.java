package braid.internal.pipeline;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Problem;
import braid.schedule.Schedule;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.SequencedMap;

/// The solution of a problem: a planned schedule, or a user's own. Exactly one of the first three
/// is present.
///
/// @param replayed true if iterations are recorded once and replayed
public record Tuning(
    Optional<Overlap> overlap,
    Optional<ContextParallel> context,
    Optional<Schedule> own,
    boolean replayed) {
  public static Tuning of(Overlap overlap) {
    return new Tuning(Optional.of(overlap), Optional.empty(), Optional.empty(), overlap.replayed());
  }

  public static Tuning of(ContextParallel how) {
    return new Tuning(Optional.empty(), Optional.of(how), Optional.empty(), how.replayed());
  }

  public static Tuning of(Schedule own, boolean replayed) {
    return new Tuning(Optional.empty(), Optional.empty(), Optional.of(own), replayed);
  }

  public Schedule schedule(Problem problem, int ranks) {
    return own.orElseGet(
        () ->
            switch (problem) {
              case GemmSpec spec -> Schedule.of(spec, overlap.orElseThrow(), ranks);
              case AttentionGradientSpec spec -> Schedule.of(spec, context.orElseThrow(), ranks);
              case AttentionSpec spec -> Schedule.of(spec, context.orElseThrow(), ranks);
            });
  }

  /// Returns how to need less memory, for messages.
  public String lessMemory() {
    return context.map(Tuning::lessMemory).orElse("take smaller sizes")
        + ", or close what is not needed";
  }

  private static String lessMemory(ContextParallel how) {
    return switch (how.method()) {
      case RING -> "take a shorter sequence, more splits or fewer streams";
      case ALL_GATHER_KV, UNFUSED -> "take a shorter sequence, or ring() with several splits";
      case ULYSSES, TWO_LEVEL -> "take a shorter sequence or more splits";
    };
  }

  /// Returns the columns of a table.
  public SequencedMap<String, String> columns() {
    if (overlap.isPresent()) {
      return overlap.get().columns();
    }
    if (context.isPresent()) {
      return context.get().columns();
    }
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", "own schedule");
    if (replayed) {
      columns.put("replayed", "true");
    }
    return columns;
  }

  @Override
  public String toString() {
    return overlap
        .map(Overlap::toString)
        .or(() -> context.map(ContextParallel::toString))
        .orElseGet(
            () ->
                "own schedule %s%s"
                    .formatted(own.orElseThrow().fingerprint(), replayed ? " replayed=true" : ""));
  }
}
