package braid.internal.remote;

import braid.internal.rank.Waits;
import braid.natives.ucx.UcxError;
import braid.natives.ucx.UcxPeer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Waits for transfers. They end with all other waits of the rank; a transfer is then given a
/// moment, since its memory may be freed next.
record Transfers(Waits waits) {
  /// Time for a transfer to end after its wait has been ended.
  private static final Duration GRACE = Duration.ofSeconds(1);

  /// Rows of a transfer that are under way at once.
  private static final int ROWS_AT_ONCE = 1024;

  /// Transfers pieces, and returns when they have arrived.
  ///
  /// @param start begins the transfer of some of them
  /// @param abandon ends a transfer that outlives its wait
  /// @throws UcxError if the peer has ended
  void await(
      Supplier<String> description,
      List<UcxPeer.Piece> pieces,
      Function<List<UcxPeer.Piece>, CompletableFuture<Void>> start,
      Runnable abandon) {
    for (int first = 0; first < pieces.size(); first += ROWS_AT_ONCE) {
      waits.check(description);
      var some = pieces.subList(first, Math.min(first + ROWS_AT_ONCE, pieces.size()));
      var done = start.apply(some).thenApply(_ -> Boolean.TRUE);
      try {
        var _ = waits.until(description, nanos -> poll(done, nanos));
      } catch (UcxError e) {
        throw e;
      } catch (RuntimeException | Error e) {
        if (!settles(done, GRACE)) {
          abandon.run();
          var _ = settles(done, GRACE);
        }
        throw e;
      }
    }
  }

  private static @Nullable Boolean poll(CompletableFuture<Boolean> done, long nanos)
      throws InterruptedException {
    try {
      return done.get(nanos, TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      return null;
    } catch (ExecutionException e) {
      throw e.getCause() instanceof UcxError failed
          ? failed
          : new IllegalStateException("a transfer failed", e);
    }
  }

  /// Waits without a check of releases, which have ended the wait before. Returns whether the
  /// transfer has ended, in any way.
  static boolean settles(CompletableFuture<?> done, Duration limit) {
    boolean interrupted = Thread.interrupted();
    try {
      done.handle((_, _) -> true).get(limit.toMillis(), TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException | ExecutionException e) {
      return false;
    } catch (InterruptedException e) {
      interrupted = true;
      return done.isDone();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
