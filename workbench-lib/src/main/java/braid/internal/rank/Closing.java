package braid.internal.rank;

import braid.BraidException;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Closes several things, each of them whatever the others do.
public final class Closing {
  private Closing() {}

  /// Closes what the supplier gives until it gives nothing more. The first failure is thrown in the
  /// end, with the others suppressed in it.
  public static void all(Supplier<@Nullable AutoCloseable> next) {
    BraidException failure = null;
    for (var resource = next.get(); resource != null; resource = next.get()) {
      try {
        resource.close();
      } catch (Exception e) {
        var wrapped =
            e instanceof BraidException known
                ? known
                : new BraidException("%s did not close: %s".formatted(resource, e), e);
        if (failure == null) {
          failure = wrapped;
        } else {
          failure.addSuppressed(wrapped);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
