package braid.internal.cuda;

import braid.internal.backend.Executable;
import braid.internal.rank.Closing;
import braid.natives.cuda.GpuEvent;
import braid.natives.cuda.MemoryOperation;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/// Work for a GPU's streams of which everything is decided, down to addresses and algorithms:
/// giving it out is one driver call for each piece and little else. Signals of one stream that
/// follow each other are one piece.
final class CudaExecutable implements Executable {
  /// The driver holds the host up in a call that cannot be aborted when a stream has about 1,000
  /// pieces of work queued.
  private static final int MOST_QUEUED = 800;

  private final List<CudaStream> streams;
  private final List<Runnable> calls = new ArrayList<>();
  private final Deque<GpuEvent> events = new ArrayDeque<>();

  /// Signals of one stream that follow each other.
  private record SignalBatch(CudaStream stream, List<Supplier<MemoryOperation>> operations)
      implements Runnable {
    @Override
    public void run() {
      stream.gpu().memoryOperations(operations.stream().map(Supplier::get).toList());
    }
  }

  private CudaExecutable(List<CudaStream> streams) {
    this.streams = List.copyOf(streams);
  }

  /// The work that is laid out on those streams.
  static CudaExecutable of(List<CudaStream> streams, Runnable enqueue) {
    var program = new CudaExecutable(streams);
    streams.forEach(stream -> stream.compileInto(program));
    try {
      enqueue.run();
    } catch (RuntimeException | Error e) {
      Closing.after(e, program);
      throw e;
    } finally {
      streams.forEach(stream -> stream.compileInto(null));
    }
    return program;
  }

  List<CudaStream> streams() {
    return streams;
  }

  /// Keeps an event that every launch records; it ends with the program.
  GpuEvent keep(GpuEvent event) {
    events.add(event);
    return event;
  }

  void add(Runnable call) {
    calls.add(call);
  }

  /// Adds a signal or a wait for one; its value depends on the turn.
  void add(CudaStream stream, Supplier<MemoryOperation> operation) {
    if (!calls.isEmpty()
        && calls.getLast() instanceof SignalBatch before
        && before.stream == stream) {
      before.operations.add(operation);
    } else {
      calls.add(new SignalBatch(stream, new ArrayList<>(List.of(operation))));
    }
  }

  @Override
  public void launch() {
    for (var call : calls) {
      call.run();
    }
  }

  @Override
  public int mostInFlight() {
    return Math.clamp(MOST_QUEUED / Math.max(calls.size(), 1), 2, MOST_IN_FLIGHT);
  }

  @Override
  public void close() {
    Closing.all(events::poll);
  }
}
