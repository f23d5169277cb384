package braid.internal.work;

import java.util.function.Supplier;

/// What a piece of work is for: it goes into spans and into the messages of waits. `chunk` is -1
/// where it belongs to none.
public record Work(int chunk, Supplier<String> what) {
  private static final int NO_CHUNK = -1;

  /// Work of no chunk.
  public static Work of(Supplier<String> what) {
    return new Work(NO_CHUNK, what);
  }

  @Override
  public String toString() {
    return what.get();
  }
}
