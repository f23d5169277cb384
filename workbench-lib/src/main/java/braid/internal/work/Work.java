package braid.internal.work;

import java.util.function.Supplier;

/// Description of an operation, for spans and for messages of waits. `chunk` is -1 if it belongs to
/// none.
public record Work(int chunk, Supplier<String> description) {
  private static final int NO_CHUNK = -1;

  /// Work of no chunk.
  public static Work of(Supplier<String> description) {
    return new Work(NO_CHUNK, description);
  }

  @Override
  public String toString() {
    return description.get();
  }
}
