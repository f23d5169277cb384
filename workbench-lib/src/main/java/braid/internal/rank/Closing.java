package braid.internal.rank;

import braid.model.BraidException;
import braid.natives.cuda.GpuError;
import java.util.ArrayDeque;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Closes several resources, each of them even if others fail.
public final class Closing {
  private Closing() {}

  /// Closes the supplier's resources until it returns null. Throws the first failure in the end,
  /// with the others suppressed.
  public static void all(Supplier<@Nullable AutoCloseable> next) {
    BraidException failure = null;
    for (var resource = next.get(); resource != null; resource = next.get()) {
      var another = failureOf(resource);
      if (failure == null) {
        failure = another;
      } else if (another != null && !sameOfGpu(failure, another)) {
        failure.addSuppressed(another);
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  /// Closes the resources in order.
  public static void each(AutoCloseable... resources) {
    var left = new ArrayDeque<>(List.of(resources));
    all(left::poll);
  }

  /// Closes a resource because of a failure; a failure to close is suppressed in the cause.
  public static void after(Throwable cause, AutoCloseable resource) {
    var another = failureOf(resource);
    if (another != null && !sameOfGpu(cause, another)) {
      cause.addSuppressed(another);
    }
  }

  private static @Nullable BraidException failureOf(AutoCloseable resource) {
    try {
      resource.close();
      return null;
    } catch (BraidException e) {
      return e;
    } catch (GpuError e) {
      return new BraidException(String.valueOf(e.getMessage()), e);
    } catch (Exception e) {
      return new BraidException("%s did not close: %s".formatted(resource, e), e);
    }
  }

  /// Returns true if both failures have the same GPU error. A GPU that has lost its context answers
  /// every call with it.
  private static boolean sameOfGpu(Throwable first, Throwable next) {
    var before = ofGpu(first);
    var now = ofGpu(next);
    return before != null && now != null && before.code() == now.code();
  }

  private static @Nullable GpuError ofGpu(Throwable failure) {
    for (Throwable innermost = failure; innermost != null; innermost = innermost.getCause()) {
      if (innermost instanceof GpuError error) {
        return error;
      }
    }
    return null;
  }
}
