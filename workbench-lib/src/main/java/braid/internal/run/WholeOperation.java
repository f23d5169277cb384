package braid.internal.run;

import braid.model.Collective;
import braid.schedule.Region;
import braid.schedule.Step;
import java.util.List;
import java.util.Optional;

/// The multiplication and the collective of a rank that a library runs as one call. The later of
/// the two enqueues it, so it waits for all that either of them waits for.
///
/// @param last the later one
public record WholeOperation(Step.Gemm gemm, Step.LibraryCall call, Step last) {
  /// Returns the operation of a rank's steps; empty if no library multiplies in them.
  static Optional<WholeOperation> of(List<Step> steps) {
    var calls =
        steps.stream()
            .filter(Step.LibraryCall.class::isInstance)
            .map(Step.LibraryCall.class::cast)
            .filter(call -> call.lane().transport().multiplies())
            .toList();
    if (calls.isEmpty()) {
      return Optional.empty();
    }
    var gemms =
        steps.stream().filter(Step.Gemm.class::isInstance).map(Step.Gemm.class::cast).toList();
    var call = calls.getFirst();
    if (calls.size() != 1 || gemms.size() != 1 || gemms.getFirst().tiles().size() != 1) {
      throw new IllegalStateException(
          "over %s a rank needs one multiplication of one tile and one call: %s"
              .formatted(call.lane().transport(), steps));
    }
    var gemm = gemms.getFirst();
    return Optional.of(
        new WholeOperation(gemm, call, steps.indexOf(gemm) > steps.indexOf(call) ? gemm : call));
  }

  /// Returns whether a step is part of it.
  boolean includes(Step step) {
    return step.equals(gemm) || step.equals(call);
  }

  /// Returns this rank's input: its part, if the library gathers.
  public Region input() {
    return gathers() ? call.x() : gemm.tiles().getFirst().input();
  }

  /// Returns this rank's output.
  public Region output() {
    return gathers() ? gemm.tiles().getFirst().output() : call.y();
  }

  private boolean gathers() {
    return call.collective() == Collective.ALL_GATHER;
  }
}
