package braid.internal.host;

import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.backend.Signals;
import braid.internal.backend.Stamp;
import braid.internal.backend.Stream;
import braid.internal.library.LibraryCall;
import braid.internal.rank.Waits;
import braid.internal.remote.RemoteWindow;
import braid.internal.shared.SignalWord;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.internal.work.Recoding;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.Span;
import braid.model.Stage;
import braid.schedule.Lane;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A stream of the host backend: a queue whose thread does the work itself.
final class HostStream implements Stream {
  /// Bit above all counted steps: an iteration that is not replayed may come before.
  private static final int RECORDED = 1 << 30;

  private final String name;
  private final Waits waits;
  private final Mover mover;
  private final HostGemm multiplier;
  private final HostAttention attention;
  private final HostAttentionGradient attentionGradient;
  private final WorkQueue queue;
  private final Consumer<HostStream> onClose;
  private volatile @Nullable Recording recording;
  private volatile Turn turn = new Turn(0, 0);

  /// True if signals enqueued now alternate between two values.
  private boolean alternating;

  /// Time at which the previous work would have ended if threads never overslept. Used only by the
  /// queue's thread.
  private long previousEndNanos = Long.MIN_VALUE;

  private volatile @Nullable AwaitedSignal awaited;

  /// A signal that the stream waits for, and the rank of the world that raises it.
  private record AwaitedSignal(Work work, int raiser, BooleanSupplier reached) {}

  private record Turn(int iteration, int step) {}

  /// Spans of a profile, and the work of each, whose labels are made at its end.
  private record Recording(long originNanos, List<Span> spans, List<Work> works) {}

  HostStream(
      int rank,
      Lane lane,
      Waits waits,
      CopyEngine engine,
      int threads,
      Cores cores,
      Consumer<HostStream> onClose) {
    this.name = lane.name();
    this.waits = waits;
    this.mover =
        switch (lane.transport()) {
          // A library runs no copies of the host.
          case COPY_ENGINE,
              NCCL_KERNELS,
              NCCL_COPY_ENGINE,
              NCCL_SYMMETRIC,
              NVSHMEM_PUTS,
              CUBLASMP ->
              engine;
          case WORKERS -> new CopyWorkers(lane.workers(), rank + "-" + name, engine, waits, cores);
          case ONE_KERNEL -> new CopyWorkers(1, rank + "-" + name, engine, waits, cores);
        };
    this.multiplier = new HostGemm(threads);
    this.attention = new HostAttention(threads);
    this.attentionGradient = new HostAttentionGradient(threads);
    // Ranks may be threads of one process, so thread names include the rank.
    this.queue =
        new WorkQueue(rank + "-" + name, waits, lane.yielding() ? cores.yieldingToOthers() : cores);
    this.onClose = onClose;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void turn(int iteration, int step) {
    turn = new Turn(iteration, step);
  }

  @Override
  public void settled(int inFlight) {}

  /// Sets whether signals alternate between two values and are compared for equality, as in GPU
  /// graphs: every recorded run on the host tests that two values are enough.
  void alternate(boolean enabled) {
    alternating = enabled;
  }

  @Override
  public void copy(Work work, Transfer transfer) {
    long enqueuedNanos = System.nanoTime();
    add(work, now -> copy(now, work, transfer, enqueuedNanos));
  }

  private void copy(Turn now, Work work, Transfer transfer, long enqueuedNanos) {
    long start = System.nanoTime();
    // A copy that was enqueued while another ran is ready when that one has ended, not when this
    // thread has woken up.
    long ready =
        previousEndNanos == Long.MIN_VALUE || enqueuedNanos - previousEndNanos > 0
            ? enqueuedNanos
            : previousEndNanos;
    previousEndNanos = mover.copy(work::toString, transfer, ready);
    keep(now, work, Stage.COPY, start, transfer.bytes(), 0);
  }

  /// Makes the copies in order: they share one link.
  @Override
  public void copyAll(Work work, List<Copy> copies) {
    copies.stream()
        .filter(each -> each.transfer().bytes() > 0)
        .forEach(
            each -> {
              if (each.local()) {
                copyLocal(each.work(), each.transfer());
              } else {
                copy(each.work(), each.transfer());
              }
            });
  }

  @Override
  public void copyLocal(Work work, Transfer transfer) {
    compute(
        work, Stage.LOCAL, transfer.bytes(), 0, () -> RemoteWindow.move(work::toString, transfer));
  }

  @Override
  public void recode(Work work, Recoding recoding) {
    compute(work, Stage.LOCAL, recoding.bytes(), 0, () -> HeadRounding.run(recoding));
  }

  @Override
  public void zero(Work work, MemorySegment memory) {
    compute(work, Stage.LOCAL, memory.byteSize(), 0, () -> memory.fill((byte) 0));
  }

  @Override
  public void prepare(Work work, Operand operand) {
    var source = operand.source();
    operand
        .widened()
        .ifPresent(
            widened ->
                compute(
                    work,
                    Stage.GEMM,
                    source.segment().byteSize(),
                    0,
                    () -> Numbers.widen(source.dtype(), source.segment(), widened.segment())));
  }

  @Override
  public void gemm(Work work, Gemm gemm) {
    compute(work, Stage.GEMM, 0, gemm.flops(), () -> gemm.each().forEach(multiplier::multiply));
  }

  @Override
  public void reduce(Work work, Reduction reduction) {
    compute(
        work,
        Stage.REDUCE,
        reduction.bytes(),
        0,
        () -> {
          if (reduction.linkBytes() == 0) {
            reduceFetched(work, reduction);
          } else {
            var _ =
                mover.carry(
                    work::toString,
                    reduction.linkBytes(),
                    System.nanoTime(),
                    () -> reduceFetched(work, reduction));
          }
        });
  }

  /// Computes a sum of peers' parts. Parts on other hosts are fetched first.
  private void reduceFetched(Work work, Reduction reduction) {
    var far =
        reduction.parts().stream().filter(part -> RemoteWindow.isRemote(part.segment())).toList();
    if (far.isEmpty()) {
      multiplier.reduce(reduction);
      return;
    }
    try (var arena = Arena.ofShared()) {
      var near = new ArrayList<Matrix>();
      for (var part : reduction.parts()) {
        near.add(far.contains(part) ? fetched(work, part, arena) : part);
      }
      multiplier.reduce(
          new Reduction(near, reduction.out(), reduction.epilogue(), reduction.linkBytes()));
    }
  }

  private static Matrix fetched(Work work, Matrix part, Arena arena) {
    var memory = arena.allocate(Math.max(1, part.size()), Long.BYTES);
    var near = Matrix.of(memory, part.dtype(), part.rows(), part.columns());
    RemoteWindow.move(work::toString, Transfer.of(part, near));
    return near;
  }

  @Override
  public void attend(Work work, AttentionBlock block) {
    compute(work, Stage.ATTENTION, 0, block.flops(), () -> attention.attend(block));
  }

  @Override
  public void attendGradient(Work work, AttentionGradientBlock gradient) {
    compute(work, Stage.ATTENTION, 0, gradient.flops(), () -> attentionGradient.attend(gradient));
  }

  @Override
  public void merge(Work work, AttentionMerge merge) {
    compute(work, Stage.ATTENTION, merge.bytes(), 0, () -> attention.merge(merge));
  }

  @Override
  public void library(Work work, Stage stage, long bytes, long flops, LibraryCall call) {
    throw new IllegalStateException("no library works on a stream of the host: " + work);
  }

  @Override
  public void raise(Work work, Signals signals, int rank, int slot) {
    var word = signals.word(rank, slot);
    boolean recorded = alternating;
    add(
        work,
        now -> {
          long start = System.nanoTime();
          int step = recorded ? parity(now) : now.step();
          if (RemoteWindow.isRemote(word)) {
            RemoteWindow.raise(word, waits.epoch(), step);
          } else {
            SignalWord.raise(word, 0, waits.epoch(), step);
          }
          keep(now, work, Stage.SIGNAL, start, 0, 0);
        });
  }

  @Override
  public void await(Work work, Signals signals, int slot, int from) {
    var word = signals.word(signals.self(), slot);
    int raiser = signals.ranks().get(from);
    boolean recorded = alternating;
    add(
        work,
        now -> {
          int epoch = waits.epoch();
          if (!reached(word, epoch, now, recorded)) {
            awaited = new AwaitedSignal(work, raiser, () -> reached(word, epoch, now, recorded));
            try {
              awaiting(
                  now,
                  work,
                  nanos ->
                      (recorded
                              ? SignalWord.awaitAt(word, 0, epoch, parity(now), nanos)
                              : SignalWord.await(word, 0, epoch, now.step(), nanos))
                          ? Boolean.TRUE
                          : null);
            } finally {
              awaited = null;
            }
          }
        });
  }

  private static boolean reached(MemorySegment word, int epoch, Turn now, boolean recorded) {
    return recorded
        ? SignalWord.isAt(word, 0, epoch, parity(now))
        : SignalWord.reached(word, 0, epoch, now.step());
  }

  /// Returns one of two values that no counted step has; 0 is the initial value of a word.
  private static int parity(Turn turn) {
    return RECORDED | (1 + turn.step() % 2);
  }

  @Override
  public Event mark() {
    var event = new HostEvent();
    queue.mark(event.reached());
    return event;
  }

  @Override
  public void await(Work work, Event event) {
    var point = (HostEvent) event;
    add(work, now -> await(now, work, point.reached()));
  }

  private void await(Turn now, Work work, CompletableFuture<Long> reached) {
    if (!reached.isDone() || reached.isCompletedExceptionally()) {
      awaiting(now, work, nanos -> waits.poll(reached, nanos) != null ? Boolean.TRUE : null);
    }
  }

  @Override
  public Stamp stamp() {
    return new HostStamp();
  }

  /// A stamp with the time at which the stream's thread reached it.
  final class HostStamp implements Stamp {
    private HostEvent point = new HostEvent();

    @Override
    public Event set() {
      point = new HostEvent();
      queue.mark(point.reached());
      return point;
    }

    @Override
    public void await(Supplier<String> description) {
      queue.await(point.reached(), description);
    }

    @Override
    public long nanosSince(Stamp earlier) {
      return nanos() - ((HostStamp) earlier).nanos();
    }

    private long nanos() {
      return point.reached().join();
    }

    @Override
    public void close() {}
  }

  @Override
  public void synchronize(Supplier<String> description) {
    queue.synchronize(description);
  }

  @Override
  public Optional<String> waitingFor() {
    return queue.running();
  }

  @Override
  public void record(long originNanos) {
    recording = new Recording(originNanos, new ArrayList<>(), new ArrayList<>());
  }

  @Override
  public List<Span> recorded() {
    var ended = recording;
    recording = null;
    if (ended == null) {
      return List.of();
    }
    var spans = new ArrayList<Span>();
    for (int i = 0; i < ended.spans().size(); i++) {
      spans.add(ended.spans().get(i).labelled(ended.works().get(i).label().get()));
    }
    return spans;
  }

  boolean awaits(int rank) {
    var waiting = awaited;
    return waiting != null && waiting.raiser() == rank && !waiting.reached().getAsBoolean();
  }

  /// Throws if the stream waits for a signal of a departed rank. Called by a thread that waits for
  /// the stream.
  void checkDeparted(Set<Integer> departed) {
    var waiting = awaited;
    if (waiting != null
        && departed.contains(waiting.raiser())
        && !waiting.reached().getAsBoolean()) {
      throw waits.departedFailure(waiting.work().toString(), List.of(waiting.raiser()));
    }
  }

  boolean isIdle() {
    return queue.isEmpty();
  }

  void quiesce() {
    queue.quiesce();
    mover.quiesce();
  }

  @Override
  public void close() {
    queue.close();
    mover.close();
    multiplier.close();
    attention.close();
    attentionGradient.close();
    onClose.accept(this);
  }

  /// Queues work with the turn in which it was enqueued, whenever it runs.
  private void add(Work work, Consumer<Turn> task) {
    var now = turn;
    queue.add(work::toString, () -> task.accept(now));
  }

  /// Queues work that is not paced by a link.
  private void compute(Work work, Stage stage, long bytes, long flops, Runnable body) {
    add(
        work,
        now -> {
          long start = System.nanoTime();
          body.run();
          previousEndNanos = keep(now, work, stage, start, bytes, flops);
        });
  }

  /// Waits for a signal or event that is not yet reached, and records a span. Reached ones leave no
  /// span.
  private void awaiting(Turn now, Work work, Waits.Attempt<Boolean> attempt) {
    long start = System.nanoTime();
    waits.until(
        work::toString,
        nanos -> {
          queue.checkOpen(work::toString);
          return attempt.within(nanos);
        });
    previousEndNanos = keep(now, work, Stage.WAIT, start, 0, 0);
  }

  private long keep(Turn now, Work work, Stage stage, long start, long bytes, long flops) {
    long end = System.nanoTime();
    var current = recording;
    if (current != null) {
      long origin = current.originNanos();
      current.works().add(work);
      current
          .spans()
          .add(
              new Span(
                  now.iteration(),
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
