package braid.launcher.cell;

import braid.model.MimeBundle;
import java.time.Duration;
import java.util.Optional;

/// End of a cell: with rank 0's result (merged with the other ranks'), without a result, or with a
/// failure.
public record Outcome(
    Optional<MimeBundle> result, Optional<CellFailure> failure, Duration elapsed) {
  public boolean succeeded() {
    return failure.isEmpty();
  }
}
