package braid.internal.cuda;

import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.backend.Signals;
import braid.internal.backend.Stamp;
import braid.internal.backend.Stream;
import braid.internal.cuda.device.Arguments;
import braid.internal.cuda.device.Attender;
import braid.internal.cuda.device.CudaDevice;
import braid.internal.cuda.device.Launch;
import braid.internal.cuda.device.Scratch;
import braid.internal.library.LibraryCall;
import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.Gemm;
import braid.internal.work.Operand;
import braid.internal.work.Recoding;
import braid.internal.work.Reduction;
import braid.internal.work.Transfer;
import braid.internal.work.Work;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import braid.natives.cuda.GpuCopy;
import braid.natives.cuda.GpuEvent;
import braid.natives.cuda.GpuStream;
import braid.natives.cuda.MemoryOperation;
import braid.natives.kernels.CopyArguments;
import braid.schedule.Lane;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Enqueues work on a stream of the GPU, without waiting for it.
final class CudaStream implements Stream {
  /// Workers of a copy over [Transport#ONE_KERNEL] that no signals surround.
  private static final int LONE_COPY_WORKERS = 16;

  private final Lane lane;
  private final CudaDevice device;
  private final SharedStream shared;
  private final GpuStream gpu;
  private final Waits waits;
  private final Scratch scratch;
  private final WorkerCopies workerCopies;
  private final Recorder recorder;
  private final Attribution.Track track;
  private final Consumer<CudaStream> onClose;
  private final AwaitedWords awaited;
  private final List<GpuEvent> events = new ArrayList<>();
  private int usedEvents;
  private @Nullable CudaExecutable program;
  private boolean recording;
  private int parity;
  private int step;

  /// Address of the counter of blocks of kernels that end with signals, 0 between them.
  private long arrived;

  /// True if work was enqueued that was not yet synchronized with.
  private volatile boolean unsynchronized;

  /// A stream of the GPU with the workspace of its multiplications, shared by all lanes of one name
  /// and priority: the GPU has fewer queues than a session has pipelines, and streams in the same
  /// queue wait for each other.
  record SharedStream(GpuStream stream, long workspace) {}

  /// An event of the CUDA backend.
  private record CudaEvent(GpuEvent event) implements Event {}

  CudaStream(
      Lane lane,
      CudaDevice device,
      SharedStream shared,
      Waits waits,
      WorkerCopies workerCopies,
      Recorder recorder,
      Consumer<CudaStream> onClose) {
    this.lane = lane;
    this.device = device;
    this.shared = shared;
    this.gpu = shared.stream();
    this.waits = waits;
    this.workerCopies = workerCopies;
    this.recorder = recorder;
    this.track = new Attribution.Track(lane.name());
    this.onClose = onClose;
    this.scratch = new Scratch(device.gpu());
    this.awaited = new AwaitedWords(device.gpu());
  }

  @Override
  public String name() {
    return lane.name();
  }

  GpuStream gpu() {
    return gpu;
  }

  @Override
  public void turn(int nextIteration, int nextStep) {
    device.gpu().use();
    recorder.turn(nextIteration);
    step = nextStep;
    unsynchronized = true;
    usedEvents = 0;
    awaited.turn();
  }

  @Override
  public void settled(int inFlight) {
    awaited.settled(inFlight);
  }

  /// Adds the work enqueued from now on to a program instead of running it; null ends this.
  void compileInto(@Nullable CudaExecutable target) {
    program = target;
  }

  /// Begins recording into a graph, for odd or even steps.
  void beginRecording(int graphParity) {
    recorder.beginGraph();
    recording = true;
    parity = graphParity;
  }

  /// Ends recording into a graph.
  void stopRecording() {
    recording = false;
  }

  @Override
  public void copy(Work work, Transfer transfer) {
    enqueue(
        work,
        Stage.COPY,
        transfer.bytes(),
        0,
        switch (lane.transport()) {
          case WORKERS -> workerCopies.of(lane.workers(), transfer);
          case ONE_KERNEL -> workerCopies.of(LONE_COPY_WORKERS, transfer);
          case COPY_ENGINE,
              NCCL_KERNELS,
              NCCL_COPY_ENGINE,
              NCCL_SYMMETRIC,
              NVSHMEM_PUTS,
              CUBLASMP ->
              byCopyEngine(transfer);
        });
  }

  private static Launch byCopyEngine(Transfer transfer) {
    long source = transfer.from().address();
    long target = transfer.to().address();
    long rowBytes = transfer.rowBytes();
    if (transfer.isOnePiece()) {
      return stream -> stream.copy(target, source, rowBytes);
    }
    return lane ->
        lane.copyRows(
            target, transfer.toPitch(), source, transfer.fromPitch(), rowBytes, transfer.rows());
  }

  /// Makes several copies by one driver call. Graphs and rows that begin a pitch apart need one
  /// call per copy.
  @Override
  public void copyAll(Work work, List<Copy> all) {
    var copies = all.stream().filter(each -> each.transfer().bytes() > 0).toList();
    var target = program;
    if (joins()
        && target != null
        && !copies.isEmpty()
        && copies.size() <= CopyArguments.MOST_COPIES
        && copies.stream().allMatch(each -> each.transfer().isOnePiece())) {
      join(target, inOneKernel(work, copies));
      return;
    }
    if (lane.transport() != Transport.COPY_ENGINE
        || copies.size() < 2
        || !copies.stream().allMatch(each -> each.transfer().isOnePiece())) {
      copies.forEach(each -> copy(each.work(), each.transfer()));
      return;
    }
    var together = pieces(copies);
    long bytes = bytes(together);
    submit(
        () -> {
          if (!recording) {
            launch(work, Stage.COPY, bytes, 0, stream -> stream.copyAll(together));
            return;
          }
          for (int i = 0; i < together.size(); i++) {
            var copy = together.get(i);
            launch(
                copies.get(i).work(),
                Stage.COPY,
                copy.bytes(),
                0,
                queue -> queue.copy(copy.to(), copy.from(), copy.bytes()));
          }
        });
  }

  private static List<GpuCopy> pieces(List<Copy> copies) {
    return copies.stream()
        .map(Copy::transfer)
        .map(each -> new GpuCopy(each.to().address(), each.from().address(), each.bytes()))
        .toList();
  }

  private static long bytes(List<GpuCopy> copies) {
    return copies.stream().mapToLong(GpuCopy::bytes).sum();
  }

  private SmallWork inOneKernel(Work work, List<Copy> copies) {
    return new SmallWork.Copies(
        work,
        copies.stream().allMatch(Copy::local) ? Stage.LOCAL : Stage.COPY,
        device.kernels(),
        new CopyArguments(pieces(copies)));
  }

  /// Returns whether a copy or a sum and the signals around it are one kernel.
  boolean joins() {
    return lane.transport() == Transport.ONE_KERNEL;
  }

  @Override
  public void copyLocal(Work work, Transfer transfer) {
    enqueue(work, Stage.LOCAL, transfer.bytes(), 0, byCopyEngine(transfer));
  }

  @Override
  public void zero(Work work, MemorySegment memory) {
    long address = memory.address();
    long bytes = memory.byteSize();
    enqueue(work, Stage.LOCAL, bytes, 0, stream -> stream.fill(address, (byte) 0, bytes));
  }

  @Override
  public void prepare(Work work, Operand operand) {
    if (operand.widened().isPresent()) {
      enqueue(
          work,
          Stage.GEMM,
          operand.source().segment().byteSize(),
          0,
          stream -> device.multiplier().refresh(stream, operand));
    }
  }

  @Override
  public void gemm(Work work, Gemm gemm) {
    device.gpu().use();
    var steps = device.multiplier().prepare(gemm, lane.reserved(), scratch, shared.workspace());
    for (var step : steps) {
      var described =
          step.stage() == Stage.LOCAL ? new Work(work.chunk(), () -> "padding for " + work) : work;
      enqueue(described, step.stage(), step.bytes(), step.flops(), step.launch());
    }
  }

  @Override
  public void reduce(Work work, Reduction reduction) {
    var target = program;
    if (joins() && target != null && reduction.out().rows() > 0) {
      join(
          target,
          new SmallWork.Sum(work, device.kernels(), Arguments.of(reduction), reduction.bytes()));
    } else {
      enqueue(work, Stage.REDUCE, reduction.bytes(), 0, device.multiplier().prepare(reduction));
    }
  }

  @Override
  public void attend(Work work, AttentionBlock block) {
    device.gpu().use();
    enqueue(work, device.attender().prepare(block, scratch), block.flops());
  }

  /// Adds the library that computes it to the names of the work.
  private void enqueue(Work work, Attender.Prepared prepared, long flops) {
    var described =
        prepared
            .library()
            .map(
                cause ->
                    new Work(work.chunk(), () -> work + cause, () -> work.label().get() + cause))
            .orElse(work);
    enqueue(described, Stage.ATTENTION, 0, flops, prepared.launch());
  }

  @Override
  public void attendGradient(Work work, AttentionGradientBlock gradient) {
    device.gpu().use();
    enqueue(work, device.attender().prepare(gradient, scratch), gradient.flops());
  }

  @Override
  public void recode(Work work, Recoding recoding) {
    device.gpu().use();
    enqueue(work, Stage.LOCAL, recoding.bytes(), 0, device.attender().prepare(recoding));
  }

  @Override
  public void merge(Work work, AttentionMerge merge) {
    device.gpu().use();
    enqueue(work, Stage.ATTENTION, merge.bytes(), 0, device.attender().prepare(merge));
  }

  @Override
  public void library(Work work, Stage stage, long bytes, long flops, LibraryCall call) {
    enqueue(work, stage, bytes, flops, call::enqueue);
  }

  @Override
  public void raise(Work work, Signals signals, int rank, int slot) {
    add(new SignalledCall.Word(signals.word(rank, slot).address(), null, 0));
  }

  @Override
  public void await(Work work, Signals signals, int slot, int from) {
    long word = signals.word(signals.self(), slot).address();
    add(new SignalledCall.Word(word, work, signals.ranks().get(from)));
  }

  private void add(SignalledCall.Word word) {
    var target = program;
    if (target == null) {
      operate(List.of(word));
    } else {
      target.add(this, word);
    }
  }

  /// Enqueues signals and waits as memory operations.
  private void operate(List<SignalledCall.Word> words) {
    gpu.memoryOperations(words.stream().map(this::operation).toList());
  }

  private MemoryOperation operation(SignalledCall.Word word) {
    if (word.awaiting() == null) {
      return new MemoryOperation(MemoryOperation.Action.WRITE, word.address(), value());
    }
    expect(word);
    recorder.enqueueWait(track, word.awaiting());
    return new MemoryOperation(
        recording ? MemoryOperation.Action.EQUAL : MemoryOperation.Action.AT_LEAST,
        word.address(),
        value());
  }

  /// Enqueues a call of a program, with the values of this turn.
  void run(SignalledCall call) {
    call.work().ifPresentOrElse(work -> run(call, work), () -> operate(call.first()));
  }

  private void run(SignalledCall call, SmallWork work) {
    var signals = call.handshake(arrived);
    signals.set(value(), recording);
    call.first().forEach(this::expect);
    call.last().forEach(this::expect);
    launch(work.work(), work.stage(), work.bytes(), 0, work.launch(signals));
  }

  /// Notes that the work enqueued next waits for a word, if it is not raised.
  private void expect(SignalledCall.Word word) {
    var work = word.awaiting();
    if (work != null) {
      awaited.add(word.address(), value(), work, word.raiser());
    }
  }

  /// Adds work to the program as one kernel with the signals around it. Its counter of blocks is
  /// allocated here, before any graph is recorded.
  private void join(CudaExecutable target, SmallWork work) {
    if (arrived == 0) {
      arrived = scratch.allocate(Integer.BYTES);
      device.gpu().fill(arrived, (byte) 0, Integer.BYTES);
    }
    target.add(this, work);
  }

  private long value() {
    return recording
        ? SignalValues.recorded(waits.epoch(), parity)
        : SignalValues.counted(waits.epoch(), step);
  }

  @Override
  public Event mark() {
    var target = program;
    var event = target == null ? reusableEvent() : target.keep(device.gpu().event(false));
    submit(() -> gpu.record(event));
    return new CudaEvent(event);
  }

  /// Returns an event for this turn; later turns reuse it.
  private GpuEvent reusableEvent() {
    if (usedEvents == events.size()) {
      events.add(device.gpu().event(false));
    }
    return events.get(usedEvents++);
  }

  @Override
  public void await(Work work, Event event) {
    var point = (CudaEvent) event;
    submit(
        () -> {
          recorder.enqueueWait(track, work);
          gpu.await(point.event());
        });
  }

  @Override
  public void synchronize(Supplier<String> description) {
    device.gpu().use();
    Polling.until(waits, () -> waitingFor(description), gpu::isDone);
    unsynchronized = false;
    awaited.settled(0);
  }

  @Override
  public Stamp stamp() {
    return new CudaStamp(device.gpu().event(true));
  }

  /// An event of the GPU with the time at which it was reached.
  final class CudaStamp implements Stamp {
    private static final double NANOS_PER_MILLI = 1e6;

    private final GpuEvent event;

    CudaStamp(GpuEvent event) {
      this.event = event;
    }

    @Override
    public Event set() {
      gpu.record(event);
      return new CudaEvent(event);
    }

    @Override
    public void await(Supplier<String> description) {
      Polling.until(waits, () -> waitingFor(description), event::isDone);
    }

    @Override
    public long nanosSince(Stamp earlier) {
      return Math.round(event.millisecondsSince(((CudaStamp) earlier).event) * NANOS_PER_MILLI);
    }

    @Override
    public void close() {
      event.close();
    }
  }

  /// Describes the first missing signal.
  @Override
  public Optional<String> waitingFor() {
    return awaited.firstMissing().map(first -> first.work().toString());
  }

  private String waitingFor(Supplier<String> description) {
    return waitingFor()
        .map(first -> "%s (%s)".formatted(first, description.get()))
        .orElseGet(description);
  }

  /// Returns true if the stream waits, or will wait, for a signal of that rank.
  boolean awaits(int rank) {
    return unsynchronized && awaited.firstMissing(Set.of(rank)).isPresent();
  }

  /// Throws if the stream waits, or will wait, for a signal of a departed rank. Called by a thread
  /// that waits for the stream.
  void checkDeparted(Set<Integer> departed) {
    if (!unsynchronized) {
      return;
    }
    awaited
        .firstMissing(departed)
        .ifPresent(
            first -> {
              throw waits.departedFailure(first.work().toString(), List.of(first.raiser()));
            });
  }

  AwaitedWords awaited() {
    return awaited;
  }

  int step() {
    return step;
  }

  /// Number of times that recording of a profile began or ended.
  int recordings() {
    return recorder.count();
  }

  @Override
  public void record(long originNanos) {
    recorder.begin(originNanos);
  }

  @Override
  public List<Span> recorded() {
    return recorder.end(track);
  }

  private void enqueue(Work work, Stage stage, long bytes, long flops, Launch launch) {
    submit(() -> launch(work, stage, bytes, flops, launch));
  }

  private void launch(Work work, Stage stage, long bytes, long flops, Launch launch) {
    recorder.launch(track, work, stage, bytes, flops, recording, launch, gpu);
  }

  private void submit(Runnable call) {
    var target = program;
    if (target == null) {
      call.run();
    } else {
      target.add(this, call);
    }
  }

  /// Ends the stream's waits on the GPU and frees its memory.
  @Override
  public void close() {
    onClose.accept(this);
    var parts = new ArrayDeque<AutoCloseable>();
    parts.add(this::freeScratch);
    parts.addAll(events);
    events.clear();
    Closing.all(parts::poll);
  }

  /// Frees scratch memory once the stream is idle. If it does not become idle the memory leaks,
  /// since freeing would wait for the GPU.
  private void freeScratch() {
    GpuIdle.await(device.gpu(), gpu::isDone, awaited::unblock);
    scratch.close();
  }
}
