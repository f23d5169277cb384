package braid.internal.backend;

import java.util.function.Supplier;

/// What a piece of work is for: it goes into spans and into the messages of waits. `chunk` is -1
/// where it belongs to none.
public record Work(int iteration, int chunk, Supplier<String> what) {
  @Override
  public String toString() {
    return what.get();
  }
}
