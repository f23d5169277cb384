package braid.internal.host;

import braid.internal.rank.Waits;
import braid.internal.remote.RemoteWindow;
import braid.internal.work.Transfer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/// Copies by compute units: each copies its share over the same link as copy engines do, and keeps
/// its processor busy until the link has delivered it, as a communication kernel keeps its SMs. A
/// concurrent GEMM has fewer processors.
public final class CopyWorkers implements Mover {
  private final CopyEngine link;
  private final Waits waits;
  private final List<WorkQueue> workers = new ArrayList<>();

  /// Creates the workers. The calling stream's thread is one of them.
  public CopyWorkers(int count, String name, CopyEngine link, Waits waits, Cores cores) {
    this.link = link;
    this.waits = waits;
    for (int i = 1; i < count; i++) {
      workers.add(new WorkQueue(name + "-" + i, waits, cores));
    }
  }

  @Override
  public long copy(Supplier<String> description, Transfer transfer, long readyNanos) {
    long deadline = link.reserve(readyNanos, transfer.bytes());
    int shares = workers.size() + 1;
    var done = new ArrayList<CompletableFuture<Long>>();
    for (int i = 0; i < workers.size(); i++) {
      var share = transfer.part(shares, i);
      var worker = workers.get(i);
      worker.add(description, () -> copyShare(description, share, deadline));
      var reached = new CompletableFuture<Long>();
      worker.mark(reached);
      done.add(reached);
    }
    copyShare(description, transfer.part(shares, workers.size()), deadline);
    for (var reached : done) {
      var _ = waits.until(description, nanos -> waits.poll(reached, nanos));
    }
    return deadline;
  }

  @Override
  public long carry(Supplier<String> description, long bytes, long readyNanos, Runnable work) {
    long deadline = link.reserve(readyNanos, bytes);
    work.run();
    occupy(description, deadline);
    return deadline;
  }

  private void copyShare(Supplier<String> description, Transfer share, long deadlineNanos) {
    RemoteWindow.move(description, share);
    occupy(description, deadlineNanos);
  }

  private void occupy(Supplier<String> description, long deadlineNanos) {
    while (deadlineNanos - System.nanoTime() > 0) {
      waits.check(description);
      Thread.onSpinWait();
    }
  }

  @Override
  public void quiesce() {
    workers.forEach(WorkQueue::quiesce);
  }

  @Override
  public void close() {
    workers.forEach(WorkQueue::close);
  }
}
