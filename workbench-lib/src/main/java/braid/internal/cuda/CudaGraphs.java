package braid.internal.cuda;

import braid.internal.backend.Executable;
import braid.internal.cuda.device.CudaDevice;
import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.natives.cuda.GpuEvent;
import braid.natives.cuda.GpuGraph;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/// A GPU's program as two CUDA graphs, one for odd and one for even steps. One graph is not enough:
/// the values of its signals are fixed when it is recorded. Events fork and join the streams.
///
/// ```
/// origin   begin | fork ─ ... work of the first stream ... ─ join | end
/// others           └──────── ... their work ... ─────────────┘
/// ```
final class CudaGraphs implements Executable {
  private static final int PARITIES = 2;

  private final Waits waits;
  private final List<CudaStream> streams;
  private final CudaExecutable program;
  private final Consumer<CudaGraphs> onClose;
  private final List<GpuEvent> events = new ArrayList<>();
  private final List<Recorded> recorded = new ArrayList<>();
  private int epoch;
  private int generation;

  /// The graph of odd or of even steps, and the words that each stream waits for in it.
  private record Recorded(
      GpuGraph graph, Map<CudaStream, Map<Long, AwaitedWords.AwaitedValue>> awaited) {}

  CudaGraphs(CudaDevice device, Waits waits, CudaExecutable program, Consumer<CudaGraphs> onClose) {
    this.waits = waits;
    this.streams = program.streams();
    this.program = program;
    this.onClose = onClose;
    for (int i = 0; i < streams.size(); i++) {
      events.add(device.gpu().event(false));
    }
    recordAll();
  }

  private void recordAll() {
    clear();
    for (int parity = 0; parity < PARITIES; parity++) {
      recorded.add(record(parity));
    }
    epoch = waits.epoch();
    generation = streams.getFirst().recordings();
  }

  private Recorded record(int parity) {
    var origin = streams.getFirst().gpu();
    origin.beginCapture();
    try {
      origin.record(events.getFirst());
      for (var stream : streams.subList(1, streams.size())) {
        stream.gpu().await(events.getFirst());
      }
      streams.forEach(stream -> stream.beginRecording(parity));
      program.launch();
      for (int i = 0; i < streams.size(); i++) {
        streams.get(i).stopRecording();
        if (i > 0) {
          streams.get(i).gpu().record(events.get(i));
          origin.await(events.get(i));
        }
      }
    } catch (RuntimeException | Error e) {
      streams.forEach(CudaStream::stopRecording);
      abortCapture(e);
      throw e;
    }
    var graph = origin.endCapture();
    graph.upload(origin);
    var awaited = new HashMap<CudaStream, Map<Long, AwaitedWords.AwaitedValue>>();
    for (var stream : streams) {
      awaited.put(stream, stream.awaited().take());
    }
    return new Recorded(graph, awaited);
  }

  /// Ends the capture after a failure, because a stream that is being captured refuses other work.
  private void abortCapture(Throwable cause) {
    Closing.after(cause, () -> streams.getFirst().gpu().endCapture().close());
  }

  @Override
  public void launch() {
    var origin = streams.getFirst();
    // A new epoch uses other signal values. When the recording of a profile begins or ends, the
    // graphs are recorded again, so that the profile can identify their nodes.
    if (epoch != waits.epoch() || generation != origin.recordings()) {
      recordAll();
    }
    var current = recorded.get(origin.step() % PARITIES);
    current.awaited().forEach((stream, words) -> stream.awaited().replaceTurn(words));
    current.graph().launch(origin.gpu());
  }

  /// Returns true: a graph runs on the first stream, and the driver orders its launches.
  @Override
  public boolean isSingleOperation() {
    return true;
  }

  private void clear() {
    Closing.all(graphs()::poll);
  }

  private Deque<AutoCloseable> graphs() {
    var graphs = new ArrayDeque<AutoCloseable>();
    recorded.forEach(each -> graphs.add(each.graph()));
    recorded.clear();
    return graphs;
  }

  @Override
  public void close() {
    onClose.accept(this);
    var parts = graphs();
    parts.addAll(events);
    events.clear();
    parts.add(program);
    Closing.all(parts::poll);
  }
}
