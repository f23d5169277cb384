package braid;

import braid.model.BraidException;
import braid.model.Problem;
import braid.model.Transport;
import braid.model.Tuning;
import braid.schedule.Goal;
import braid.schedule.Part;
import braid.schedule.Port;
import braid.schedule.Schedule;
import braid.schedule.Step;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Checks whether a user's own schedule can run as a pipeline; an error names the fault before any
/// step runs.
final class OwnSchedules {
  private OwnSchedules() {}

  /// Returns the problem of a valid schedule.
  ///
  /// @param given problem that the pipeline received as well
  /// @param tuning tuning that the pipeline received as well, which is a contradiction
  static Problem problem(
      Schedule schedule, @Nullable Problem given, @Nullable Object tuning, ProcessGroup group) {
    if (tuning != null) {
      throw new BraidException(
          "a schedule replaces an overlap but both were set (%s); leave one out".formatted(tuning));
    }
    if (!(schedule.goal() instanceof Goal.Solution(var problem, var _))) {
      throw new BraidException(
          "a pipeline's schedule must be for a problem but is `%s`; begin it with Schedule.on(spec, ranks)"
              .formatted(schedule.goal()));
    }
    if (given != null && !given.equals(problem)) {
      throw new BraidException(
          "the schedule is for %s but the problem is %s; leave the problem out"
              .formatted(problem, given));
    }
    if (schedule.ranks() != group.size()) {
      throw new BraidException(
          "the schedule is of %d ranks but group `%s` has %d; make it for world.size()"
              .formatted(schedule.ranks(), group.name(), group.size()));
    }
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      for (var step : schedule.steps(rank)) {
        if (step instanceof Step.LibraryCall call
            && (call.lane().transport() != Transport.NCCL_KERNELS || call.hostWaits())) {
          throw new BraidException(
              "library calls of your own must be over nccl_kernels, for which the host need not wait, but it has %s%s; give lane `%s` Transport.NCCL_KERNELS, or write copies and signals instead"
                  .formatted(
                      call.name(rank, schedule.steps(rank).indexOf(step)),
                      call.hostWaits() ? ", for which the host waits" : "",
                      call.lane()));
        }
      }
    }
    // Ports that every schedule of the problem has.
    for (var port : Schedule.of(problem, Tuning.unfused(problem), group.size()).ports()) {
      checkPort(port, schedule);
    }
    schedule.check();
    return problem;
  }

  private static void checkPort(Port wanted, Schedule schedule) {
    var port =
        schedule
            .port(wanted.name())
            .filter(own -> own.given() == wanted.given())
            .orElseThrow(
                () ->
                    new BraidException(
                        "a schedule of %s must have %s but has %s; add it with local(Part.%s)"
                            .formatted(
                                schedule.goal(),
                                named(wanted),
                                schedule.ports().stream()
                                    .map(OwnSchedules::named)
                                    .collect(Collectors.joining(", ")),
                                part(wanted.name()).name())));
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      var own = port.on(rank);
      var right = wanted.on(rank);
      boolean fits =
          own.rank() == rank
              && own.rows() == right.rows()
              && own.columns() == right.columns()
              && own.buffer().dtype() == right.buffer().dtype()
              && own.buffer().transposed() == right.buffer().transposed();
      if (!fits) {
        throw new BraidException(
            "port `%s` of rank %d must be %d x %d %s%s but was %s of %d columns %s%s; give the buffer that shape"
                .formatted(
                    wanted.name(),
                    rank,
                    right.rows(),
                    right.columns(),
                    right.buffer().dtype(),
                    stored(right.buffer().transposed()),
                    own,
                    own.columns(),
                    own.buffer().dtype(),
                    stored(own.buffer().transposed())));
      }
    }
  }

  private static String named(Port port) {
    return "%s port `%s`".formatted(port.given() ? "given" : "made", port.name());
  }

  private static String stored(boolean transposed) {
    return transposed ? " stored by columns" : "";
  }

  private static Part part(String port) {
    for (var part : Part.values()) {
      if (part.port().equals(port)) {
        return part;
      }
    }
    throw new IllegalArgumentException("no part " + port);
  }
}
