package braid.internal.work;

import java.util.function.Supplier;

/// Description of an operation, for spans and for messages of waits. `chunk` is -1 if it belongs to
/// none.
///
/// @param label short name for spans; empty if it has none
public record Work(int chunk, Supplier<String> description, Supplier<String> label) {
  private static final int NO_CHUNK = -1;

  /// Creates work without a label.
  public Work(int chunk, Supplier<String> description) {
    this(chunk, description, () -> "");
  }

  /// Work of no chunk.
  public static Work of(Supplier<String> description) {
    return new Work(NO_CHUNK, description);
  }

  @Override
  public String toString() {
    return description.get();
  }
}
