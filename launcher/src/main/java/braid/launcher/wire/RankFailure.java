package braid.launcher.wire;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Failure of a rank's cell: every cause with its class, message and stack.
public record RankFailure(Cause cause, int unresolvedId, List<Thrown> chain) {
  public enum Cause {
    /// The cell's own code threw.
    THROWN,
    /// The cell called a declaration that refers to something not declared yet.
    UNRESOLVED,
    /// The cell was interrupted.
    STOPPED,
    /// The rank could not handle a request; a defect of Braid.
    INTERNAL
  }

  public record Thrown(String className, String message, List<StackTraceElement> stack) {
    @Override
    public String toString() {
      return message.isEmpty() ? className : className + ": " + message;
    }
  }

  /// Longest chain of causes; a longer one is considered circular.
  private static final int MAX_CAUSES = 20;

  private static final int MAX_FRAMES = 200;
  private static final int MAX_MESSAGE_CHARS = 1 << 16;

  /// Returns the failure. Never throws, although methods of `thrown` may be the cell's own and
  /// throw.
  public static RankFailure of(Cause cause, int unresolvedId, Throwable thrown) {
    return new RankFailure(
        cause,
        unresolvedId,
        chain(thrown).stream()
            .map(t -> new Thrown(t.getClass().getName(), message(t), stack(t)))
            .toList());
  }

  /// Returns the exception and its causes, outermost first, as far as they are readable.
  public static List<Throwable> chain(Throwable thrown) {
    var chain = new ArrayList<Throwable>();
    for (Throwable t = thrown; t != null && chain.size() < MAX_CAUSES; t = cause(t)) {
      chain.add(t);
    }
    return chain;
  }

  private static @Nullable Throwable cause(Throwable failure) {
    try {
      return failure.getCause();
    } catch (RuntimeException | Error e) {
      return null; // without its cause it is still a failure
    }
  }

  private static String message(Throwable failure) {
    try {
      var message = failure.getMessage();
      return message == null ? "" : cut(message);
    } catch (RuntimeException | Error e) {
      return "(its getMessage() threw " + e.getClass().getName() + ")";
    }
  }

  private static String cut(String message) {
    return message.length() <= MAX_MESSAGE_CHARS
        ? message
        : String.format(
            Locale.ROOT,
            "%s ... (%,d characters in all)",
            message.substring(0, MAX_MESSAGE_CHARS),
            message.length());
  }

  private static List<StackTraceElement> stack(Throwable failure) {
    try {
      return Arrays.stream(failure.getStackTrace()).limit(MAX_FRAMES).toList();
    } catch (RuntimeException | Error e) {
      return List.of();
    }
  }

  public Thrown root() {
    return chain.getFirst();
  }

  /// Returns the first exception of this class in the chain.
  public Optional<Thrown> find(Class<?> type) {
    return chain.stream().filter(t -> t.className.equals(type.getName())).findFirst();
  }
}
