package braid.internal.rank;

import braid.model.BraidException;
import braid.natives.cuda.GpuError;
import java.util.ArrayDeque;
import java.util.List;
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

  /// Closes those in their order.
  public static void each(AutoCloseable... resources) {
    var left = new ArrayDeque<>(List.of(resources));
    all(left::poll);
  }

  /// Closes that because of a failure, which stays the one that is told.
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

  /// Once its context is lost a GPU answers every call with the same error, which says nothing new.
  private static boolean sameOfGpu(Throwable first, Throwable next) {
    var before = ofGpu(first);
    var now = ofGpu(next);
    return before != null && now != null && before.code() == now.code();
  }

  private static @Nullable GpuError ofGpu(Throwable failure) {
    for (Throwable at = failure; at != null; at = at.getCause()) {
      if (at instanceof GpuError error) {
        return error;
      }
    }
    return null;
  }
}
