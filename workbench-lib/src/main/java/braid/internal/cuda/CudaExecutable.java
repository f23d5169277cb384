package braid.internal.cuda;

import braid.internal.backend.Executable;
import braid.internal.rank.Closing;
import braid.natives.cuda.GpuEvent;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Compiled work for a GPU's streams, with all addresses and algorithms decided: a launch is little
/// more than one driver call per operation. Consecutive signals of one stream are one call: see
/// [SignalledCall].
final class CudaExecutable implements Executable {
  /// Limit of queued calls: with about 1,000 in a stream, the driver blocks the host in a call that
  /// cannot be aborted.
  private static final int MOST_QUEUED = 800;

  private final List<CudaStream> streams;
  private final List<Runnable> calls = new ArrayList<>();
  private final Deque<GpuEvent> events = new ArrayDeque<>();

  /// The calls that take more words of their streams.
  private final Map<CudaStream, SignalledCall> open = new HashMap<>();

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

  void add(CudaStream stream, Runnable call) {
    open.remove(stream);
    append(call);
  }

  private void append(Runnable call) {
    // These join only signals that follow each other in the program of all streams.
    open.keySet().removeIf(stream -> !stream.joins());
    calls.add(call);
  }

  /// Adds a signal or a wait for one.
  void add(CudaStream stream, SignalledCall.Word word) {
    var current = open.get(stream);
    if (current == null || !current.add(word)) {
      var next = new SignalledCall(stream.joins());
      var _ = next.add(word);
      begin(stream, next);
    }
  }

  /// Adds work that is one kernel together with the signals around it.
  void add(CudaStream stream, SmallWork work) {
    var current = open.getOrDefault(stream, new SignalledCall(true));
    var call = current.with(work);
    if (call != open.get(stream)) {
      begin(stream, call);
    }
  }

  private void begin(CudaStream stream, SignalledCall call) {
    append(() -> stream.run(call));
    open.put(stream, call);
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
