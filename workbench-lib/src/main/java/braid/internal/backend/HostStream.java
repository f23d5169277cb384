package braid.internal.backend;

import braid.Span;
import braid.Stage;
import braid.internal.host.CopyEngine;
import braid.internal.host.Cores;
import braid.internal.host.HostGemm;
import braid.internal.host.SignalWord;
import braid.internal.host.WorkQueue;
import braid.internal.rank.Waits;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A queue with a thread that empties it, doing the work itself.
final class HostStream implements Stream {
  private final String name;
  private final Waits waits;
  private final CopyEngine engine;
  private final HostGemm multiplier;
  private final WorkQueue queue;
  private final Consumer<HostStream> onClose;
  private volatile @Nullable Recording recording;

  /// When the previous work would have ended on a machine whose threads never oversleep; of the
  /// queue's thread alone.
  private long previousEndNanos = Long.MIN_VALUE;

  private record Recording(long originNanos, List<Span> spans) {}

  HostStream(
      int rank,
      String name,
      Waits waits,
      CopyEngine engine,
      int threads,
      Cores cores,
      Consumer<HostStream> onClose) {
    this.name = name;
    this.waits = waits;
    this.engine = engine;
    this.multiplier = new HostGemm(threads);
    // Ranks may be threads of one process, so what a debugger lists needs the rank.
    this.queue = new WorkQueue(rank + "-" + name, waits, cores);
    this.onClose = onClose;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void copy(Work work, MemorySegment from, MemorySegment to) {
    long givenNanos = System.nanoTime();
    add(
        work,
        () -> {
          long start = System.nanoTime();
          // A copy right after another was posted while that one ran: it starts when the link was
          // free, not when this thread was awake.
          long ready =
              previousEndNanos == Long.MIN_VALUE || givenNanos - previousEndNanos > 0
                  ? givenNanos
                  : previousEndNanos;
          previousEndNanos = engine.copy(work::toString, from, to, ready);
          keep(work, Stage.COPY, start, from.byteSize(), 0);
        });
  }

  @Override
  public void copyLocal(Work work, MemorySegment from, MemorySegment to) {
    compute(
        work,
        Stage.COPY,
        from.byteSize(),
        0,
        () -> MemorySegment.copy(from, 0, to, 0, from.byteSize()));
  }

  @Override
  public void prepare(Work work, Operand operand) {
    operand
        .widened()
        .ifPresent(
            widened ->
                compute(
                    work,
                    Stage.GEMM,
                    operand.source().byteSize(),
                    0,
                    () -> HostGemm.widen(operand.dtype(), operand.source(), widened.segment())));
  }

  @Override
  public void gemm(Work work, Gemm gemm) {
    var b = gemm.b();
    var right = b.widened().map(PrivateMemory::segment).orElse(b.source());
    compute(
        work,
        Stage.GEMM,
        0,
        gemm.flops(),
        () ->
            multiplier.multiply(
                b.dtype(), gemm.m(), gemm.n(), gemm.k(), gemm.a(), right, gemm.c()));
  }

  @Override
  public void raise(Work work, Signals signals, int rank, int slot, int step) {
    var all = signals.memory().all();
    long offset = signals.offset(rank, slot);
    add(
        work,
        () -> {
          long start = System.nanoTime();
          SignalWord.raise(all, offset, waits.epoch(), step);
          keep(work, Stage.SIGNAL, start, 0, 0);
        });
  }

  @Override
  public void await(Work work, Signals signals, int slot, int step) {
    var all = signals.memory().all();
    long offset = signals.offset(signals.self(), slot);
    add(
        work,
        () -> {
          int epoch = waits.epoch();
          if (!SignalWord.reached(all, offset, epoch, step)) {
            awaiting(
                work,
                nanos -> SignalWord.await(all, offset, epoch, step, nanos) ? Boolean.TRUE : null);
          }
        });
  }

  @Override
  public Event mark() {
    return new Event.OfHost(queue.mark());
  }

  @Override
  public void await(Work work, Event event) {
    var reached =
        switch (event) {
          case Event.OfHost(var future) -> future;
        };
    add(
        work,
        () -> {
          if (!reached.isDone() || reached.isCompletedExceptionally()) {
            awaiting(work, nanos -> waits.poll(reached, nanos));
          }
        });
  }

  @Override
  public void synchronize(Supplier<String> description) {
    queue.synchronize(description);
  }

  @Override
  public void record(long originNanos) {
    recording = new Recording(originNanos, new ArrayList<>());
  }

  @Override
  public List<Span> recorded() {
    var ended = recording;
    recording = null;
    return ended == null ? List.of() : List.copyOf(ended.spans());
  }

  void rest() {
    queue.rest();
  }

  @Override
  public void close() {
    queue.close();
    multiplier.close();
    onClose.accept(this);
  }

  private void add(Work work, WorkQueue.Task task) {
    queue.add(work::toString, task);
  }

  /// Work that takes the time it takes.
  private void compute(Work work, Stage stage, long bytes, long flops, Runnable body) {
    add(
        work,
        () -> {
          long start = System.nanoTime();
          body.run();
          previousEndNanos = keep(work, stage, start, bytes, flops);
        });
  }

  /// A wait for what is not there yet. One for what is there leaves no span and takes no time.
  private void awaiting(Work work, Waits.Attempt<Boolean> attempt) {
    long start = System.nanoTime();
    waits.until(
        work::toString,
        nanos -> {
          queue.checkOpen(work::toString);
          return attempt.within(nanos);
        });
    previousEndNanos = keep(work, Stage.WAIT, start, 0, 0);
  }

  private long keep(Work work, Stage stage, long start, long bytes, long flops) {
    long end = System.nanoTime();
    var current = recording;
    if (current != null) {
      long origin = current.originNanos();
      current
          .spans()
          .add(
              new Span(
                  work.iteration(),
                  work.chunk(),
                  stage,
                  name,
                  start - origin,
                  end - origin,
                  bytes,
                  flops));
    }
    return end;
  }
}
