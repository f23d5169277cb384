package braid.natives.cuda;

import braid.natives.blaslt.Lt;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// Host time of each enqueuing call in microseconds: medians of runs short enough that no queue is
/// full. Needs a GPU, and two for copies between GPUs. A benchmark, not a test.
final class CallCosts {
  private static final int ROUNDS = 200;
  private static final int CALLS = 20;
  private static final long BYTES = 1L << 20;

  private final Gpu gpu;
  private final GpuStream stream;
  private final GpuStream other;
  private final GpuEvent event;

  private CallCosts(Gpu gpu) {
    this.gpu = gpu;
    stream = gpu.stream(gpu.greatestPriority());
    other = gpu.stream(gpu.leastPriority());
    event = gpu.event(false);
  }

  public static void main(String[] args) {
    new CallCosts(Gpu.open(0, "call costs")).run();
  }

  private void run() {
    long here = gpu.allocate(2 * BYTES);
    long peerAddress = Gpu.count() > 1 ? peer() : here + BYTES;
    cost("copy within the GPU", () -> stream.copy(here, here + BYTES, BYTES));
    cost("copy from a peer", () -> stream.copy(here, peerAddress, BYTES));
    cost("write of a word", () -> stream.write(here, 1));
    cost("write of a peer's word", () -> stream.write(peerAddress, 1));
    cost("wait for a word", () -> stream.awaitAtLeast(here, 1));
    for (int count : new int[] {1, 2, 6}) {
      var writes = operations(MemoryOperation.Action.WRITE, peerAddress, count);
      cost(count + " writes in one call", () -> stream.memoryOperations(writes));
      var waits = operations(MemoryOperation.Action.AT_LEAST, here, count);
      cost(count + " waits in one call", () -> stream.memoryOperations(waits));
    }
    cost("event", () -> stream.record(event));
    cost("wait for an event", () -> other.await(event));
    try (var lt = Lt.open(gpu)) {
      var layout = new Lt.Layout(Lt.Type.BF16, 128, 128, 128, false);
      var problem = new Lt.Problem(layout, layout, layout, false, 0, 1, 0, 0, 0);
      var plan = lt.candidates(problem, 1, Lt.WORKSPACE_BYTES).getFirst();
      long matrices = gpu.allocate(4 << 20);
      long workspace = gpu.allocate(Lt.WORKSPACE_BYTES);
      Runnable gemm =
          () -> plan.run(other, 1, matrices, matrices, 0, matrices, matrices, 0, workspace);
      cost("multiplication", gemm);
      Runnable copy = () -> stream.copy(here, peerAddress, BYTES);
      Runnable wait =
          () -> stream.memoryOperations(operations(MemoryOperation.Action.EQUAL, here, 2));
      Runnable raise =
          () -> stream.memoryOperations(operations(MemoryOperation.Action.WRITE, peerAddress, 2));
      // Satisfies the waits.
      stream.write(here, 1);
      graph("graph: 8 multiplications", List.of(), List.of(), gemm);
      graph("graph: 8 multiplications, 4 copies", List.of(), List.of(copy), gemm);
      graph(
          "graph: 8 multiplications, 4 copies, a call of writes",
          List.of(raise),
          List.of(copy),
          gemm);
      graph(
          "graph: 8 multiplications, 4 copies, a call of writes and one of waits",
          List.of(raise, wait),
          List.of(copy),
          gemm);
      graph(
          "graph: 8 multiplications, a call of writes and one of waits",
          List.of(raise, wait),
          List.of(),
          gemm);
    }
  }

  /// Measures a graph of two branches: `first` and copies on one, multiplications on the other.
  private void graph(String title, List<Runnable> first, List<Runnable> copies, Runnable gemm) {
    var events = new ArrayList<GpuEvent>();
    for (int i = 0; i < 8; i++) {
      events.add(gpu.event(false));
    }
    stream.beginCapture();
    stream.record(events.get(6));
    other.await(events.get(6));
    first.forEach(Runnable::run);
    for (int i = 0; i < 4; i++) {
      gemm.run();
      copies.forEach(Runnable::run);
      stream.record(events.get(i));
      other.await(events.get(i));
      gemm.run();
    }
    other.record(events.get(7));
    stream.await(events.get(7));
    try (var graph = stream.endCapture()) {
      graph.upload(stream);
      cost(title + " (" + graph.nodes() + " nodes)", () -> graph.launch(stream), 2);
    }
  }

  private static List<MemoryOperation> operations(
      MemoryOperation.Action action, long address, int count) {
    var all = new ArrayList<MemoryOperation>();
    for (int i = 0; i < count; i++) {
      all.add(
          new MemoryOperation(
              action, address + 64L * i * (action == MemoryOperation.Action.WRITE ? 1 : 0), 1));
    }
    return all;
  }

  private long peer() {
    var peer = Gpu.open(1, "the peer");
    var memory = VirtualMemory.create(peer, BYTES);
    gpu.use();
    var range = AddressRange.reserve(gpu, memory.bytes(), 0);
    range.map(0, memory);
    return range.address();
  }

  private void cost(String title, Runnable call) {
    cost(title, call, CALLS);
  }

  private void cost(String title, Runnable call, int calls) {
    var micros = new double[ROUNDS];
    for (int round = -ROUNDS; round < ROUNDS; round++) {
      long begin = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        call.run();
      }
      double took = (System.nanoTime() - begin) / 1000.0 / calls;
      gpu.synchronize();
      if (round >= 0) {
        micros[round] = took;
      }
    }
    Arrays.sort(micros);
    System.out.println(
        String.format(
            Locale.ROOT,
            "%-70s %7.2f us (p10 %.2f, p90 %.2f)",
            title,
            micros[ROUNDS / 2],
            micros[ROUNDS / 10],
            micros[ROUNDS * 9 / 10]));
  }
}
