package braid.internal.rank;

import braid.model.BraidException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Admits one thread of a rank at a time to calls that all ranks make in the same order. With two
/// threads the order would be random, and ranks would wait for calls that never come. A thread may
/// make calls within its call.
public final class SingleCaller {
  private record Caller(Thread thread, Supplier<String> call) {}

  private final AtomicReference<@Nullable Caller> caller = new AtomicReference<>();

  /// Admits the calling thread, or refuses it. Returns whether [#leave] must be called: false
  /// within a call of the same thread.
  ///
  /// @param call name of the call, for messages
  /// @param remedy text after the semicolon of a refusal
  public boolean enter(Supplier<String> call, String remedy) {
    var mine = new Caller(Thread.currentThread(), call);
    var other = caller.compareAndExchange(null, mine);
    if (other == null) {
      return true;
    }
    if (other.thread.equals(mine.thread)) {
      return false;
    }
    throw new BraidException(
        "%s on thread %s: thread %s of this rank is in %s; %s"
            .formatted(
                call.get(), name(mine.thread), name(other.thread), other.call.get(), remedy));
  }

  public void leave() {
    caller.set(null);
  }

  private static String name(Thread thread) {
    return thread.getName().isEmpty()
        ? "#" + thread.threadId()
        : "`%s`".formatted(thread.getName());
  }
}
