package braid.internal.pipeline;

import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.schedule.Schedule;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.SequencedMap;

/// The solution of a problem: a planned schedule, or a user's own.
///
/// @param replayed true if iterations are recorded once and replayed
public record Tuning(Optional<Overlap> overlap, Optional<Schedule> own, boolean replayed) {
  public static Tuning of(Overlap overlap) {
    return new Tuning(Optional.of(overlap), Optional.empty(), overlap.replayed());
  }

  public static Tuning of(Schedule own, boolean replayed) {
    return new Tuning(Optional.empty(), Optional.of(own), replayed);
  }

  public Schedule schedule(GemmSpec spec, int ranks) {
    return own.orElseGet(() -> Schedule.of(spec, overlap.orElseThrow(), ranks));
  }

  /// Returns the columns of a table.
  public SequencedMap<String, String> columns() {
    if (overlap.isPresent()) {
      return overlap.get().columns();
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
        .orElseGet(
            () ->
                "own schedule %s%s"
                    .formatted(own.orElseThrow().fingerprint(), replayed ? " replayed=true" : ""));
  }
}
