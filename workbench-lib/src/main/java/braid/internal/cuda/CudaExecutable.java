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

/// Compiled work for a GPU's streams, with all addresses and algorithms decided: a launch is little
/// more than one driver call per operation. Consecutive signals of one stream are one call.
final class CudaExecutable implements Executable {
  /// Limit of queued calls: with about 1,000 in a stream, the driver blocks the host in a call that
  /// cannot be aborted.
  private static final int MOST_QUEUED = 800;

  private final List<CudaStream> streams;
  private final List<Runnable> calls = new ArrayList<>();
  private final Deque<GpuEvent> events = new ArrayDeque<>();

  /// Consecutive signals of one stream.
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

  /// Compiles the work that `enqueue` puts on the streams.
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

  /// Keeps an event that every launch records; closed with the program.
  GpuEvent keep(GpuEvent event) {
    events.add(event);
    return event;
  }

  void add(Runnable call) {
    calls.add(call);
  }

  /// Adds a signal or a wait for one, whose value depends on the turn.
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
  public int maxInFlight() {
    return Math.clamp(MOST_QUEUED / Math.max(calls.size(), 1), 2, MAX_IN_FLIGHT);
  }

  @Override
  public void close() {
    Closing.all(events::poll);
  }
}
