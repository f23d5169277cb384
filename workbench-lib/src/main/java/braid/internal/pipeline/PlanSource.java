package braid.internal.pipeline;

import braid.model.ContextParallel;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Transport;
import braid.model.Tuning;
import braid.schedule.Schedule;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.SequencedMap;

/// Source of a plan's schedule: a tuning, from which one is planned, or a user's own schedule.
/// Exactly one of the two is present.
public record PlanSource(Optional<Tuning> tuning, Optional<Schedule> own) {
  public static PlanSource of(Tuning tuning) {
    return new PlanSource(Optional.of(tuning), Optional.empty());
  }

  public static PlanSource of(Schedule own) {
    return new PlanSource(Optional.empty(), Optional.of(own));
  }

  public Schedule schedule(Problem problem, int ranks) {
    return own.orElseGet(() -> Schedule.of(problem, tuning.orElseThrow(), ranks));
  }

  /// Returns the transport of a tuning, or the default one, whose memory may be of any kind.
  public Transport transport() {
    return tuning.map(Tuning::transport).orElse(Overlap.DEFAULT_TRANSPORT);
  }

  boolean replayed() {
    return tuning.map(Tuning::replayed).or(() -> own.map(Schedule::replayed)).orElseThrow();
  }

  /// Returns how to need less memory, for messages.
  String lessMemory() {
    return (tuning.orElse(null) instanceof ContextParallel context
            ? lessMemory(context)
            : "take smaller sizes")
        + ", or close what is not needed";
  }

  private static String lessMemory(ContextParallel context) {
    return switch (context.method()) {
      case RING -> "take a shorter sequence, more splits or fewer streams";
      case ALL_GATHER_KV, UNFUSED -> "take a shorter sequence, or ring() with several splits";
      case ULYSSES, TWO_LEVEL -> "take a shorter sequence or more splits";
    };
  }

  /// Returns the columns of a table.
  public SequencedMap<String, String> columns() {
    if (tuning.isPresent()) {
      return tuning.get().columns();
    }
    var schedule = own.orElseThrow();
    var columns = new LinkedHashMap<String, String>();
    columns.put("method", schedule.name().isEmpty() ? "own schedule" : schedule.name());
    if (schedule.replayed()) {
      columns.put("replayed", "true");
    }
    return columns;
  }

  @Override
  public String toString() {
    return tuning
        .map(Tuning::toString)
        .or(
            () ->
                own.map(
                    schedule ->
                        "own schedule %s%s%s"
                            .formatted(
                                schedule.name().isEmpty() ? "" : "`" + schedule.name() + "` ",
                                schedule.fingerprint(),
                                schedule.replayed() ? " replayed=true" : "")))
        .orElseThrow();
  }
}
