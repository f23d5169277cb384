package braid.internal.host;

import braid.internal.rank.Waits;
import braid.internal.work.Transfer;
import braid.model.Link;
import java.util.function.Supplier;

/// Moves bytes to this rank at the speed of the link it plays. The thread of a stream that copies
/// is the engine's while it does: it moves the bytes and then sleeps until the link would have
/// brought them, so that a GEMM of another stream has the core.
///
/// All copies of a rank share one link, that by which bytes come to it.
public final class CopyEngine implements Mover {
  private volatile Pacer pacer;
  private final Waits waits;

  public CopyEngine(Link link, Waits waits) {
    this.pacer = new Pacer(link);
    this.waits = waits;
  }

  /// Plays that link from the next copy on.
  public void play(Link link) {
    pacer = new Pacer(link);
  }

  /// Takes the link for that many bytes that were ready at that time, and says when it is through.
  long reserve(long readyNanos, long bytes) {
    return pacer.reserve(readyNanos, bytes);
  }

  @Override
  public long copy(Supplier<String> description, Transfer transfer, long readyNanos) {
    long deadline = reserve(readyNanos, transfer.bytes());
    transfer.move();
    waits.sleepUntil(description, deadline);
    return deadline;
  }

  /// What it does is done by the threads of streams.
  @Override
  public void rest() {}

  @Override
  public void close() {}
}
