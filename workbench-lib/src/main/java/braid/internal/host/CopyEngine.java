package braid.internal.host;

import braid.internal.rank.Waits;
import braid.internal.remote.RemoteWindow;
import braid.internal.work.Transfer;
import braid.model.Link;
import java.util.function.Supplier;

/// Copies bytes to this rank at the speed of a simulated link. A stream's thread copies the bytes
/// itself and then sleeps until the link would have delivered them, so that a GEMM of another
/// stream can use the core.
///
/// All copies of a rank share one link, the incoming one.
public final class CopyEngine implements Mover {
  private volatile Pacer pacer;
  private final Waits waits;

  public CopyEngine(Link link, Waits waits) {
    this.pacer = new Pacer(link);
    this.waits = waits;
  }

  /// Simulates the link from the next copy on.
  public void play(Link link) {
    pacer = new Pacer(link);
  }

  /// Reserves the link for bytes that were ready at a time, and returns the time at which it has
  /// delivered them.
  long reserve(long readyNanos, long bytes) {
    return pacer.reserve(readyNanos, bytes);
  }

  @Override
  public long copy(Supplier<String> description, Transfer transfer, long readyNanos) {
    return carry(
        description, transfer.bytes(), readyNanos, () -> RemoteWindow.move(description, transfer));
  }

  @Override
  public long carry(Supplier<String> description, long bytes, long readyNanos, Runnable work) {
    long deadline = reserve(readyNanos, bytes);
    work.run();
    waits.sleepUntil(description, deadline);
    return deadline;
  }

  /// Does nothing: the threads of streams do the work.
  @Override
  public void quiesce() {}

  @Override
  public void close() {}
}
