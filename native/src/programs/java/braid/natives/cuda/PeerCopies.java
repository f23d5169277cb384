package braid.natives.cuda;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// Cost of an all-gather in four chunks by the shape of its copies: host time to enqueue it,
/// eagerly and as a graph, and GPU time to run it. Needs two or more GPUs. A benchmark, not a test.
final class PeerCopies {
  private static final int CHUNKS = 4;
  private static final int ROUNDS = 100;
  private static final long SMALL = 2048L * 2048 * 2 / 4;
  private static final long LARGE = 8192L * 8192 * 2 / 4;

  private final Gpu gpu;
  private final int peers;
  private final List<GpuStream> streams = new ArrayList<>();
  private final List<GpuEvent> marks = new ArrayList<>();
  private final GpuEvent begin;
  private final GpuEvent end;

  /// Enqueues the copies of one chunk.
  private interface Shape {
    void chunk(int chunk);
  }

  private PeerCopies(Gpu gpu) {
    this.gpu = gpu;
    peers = Gpu.count() - 1;
    for (int i = 0; i < Math.max(2, peers); i++) {
      streams.add(gpu.stream(gpu.greatestPriority()));
    }
    for (int i = 0; i < 64; i++) {
      marks.add(gpu.event(false));
    }
    begin = gpu.event(true);
    end = gpu.event(true);
  }

  public static void main(String[] args) {
    var copies = new PeerCopies(Gpu.open(0, "peer copies"));
    for (long shard : new long[] {SMALL, LARGE}) {
      copies.run(shard);
    }
  }

  private void run(long shard) {
    System.out.printf(
        Locale.ROOT, "%d peers, %d KiB per peer, %d chunks%n", peers, shard >> 10, CHUNKS);
    long room = Math.max(shard, 2L << 20);
    var view = AddressRange.reserve(gpu, room * peers, 0);
    for (int peer = 0; peer < peers; peer++) {
      var remote = Gpu.open(peer + 1, "a peer");
      var memory = VirtualMemory.create(remote, room);
      remote.use();
      var own = AddressRange.reserve(remote, room, 0);
      own.map(0, memory);
      remote.fill(own.address(), (byte) (peer + 1), room);
      remote.synchronize();
      gpu.use();
      view.map(peer * room, memory);
    }
    long from = view.address();
    long to = gpu.allocate(shard * peers);
    long piece = shard / CHUNKS;
    var first = streams.getFirst();
    measure(
        "one by one, one stream",
        shard,
        to,
        chunk -> {
          for (int peer = 0; peer < peers; peer++) {
            first.copy(
                to + peer * shard + chunk * piece, from + peer * room + chunk * piece, piece);
          }
        });
    measure(
        "one by one, one stream per peer",
        shard,
        to,
        chunk -> {
          for (int peer = 0; peer < peers; peer++) {
            streams
                .get(peer)
                .copy(to + peer * shard + chunk * piece, from + peer * room + chunk * piece, piece);
          }
        });
    measure(
        "a batch",
        shard,
        to,
        chunk -> {
          var all = new ArrayList<GpuCopy>();
          for (int peer = 0; peer < peers; peer++) {
            long index = chunk * piece;
            all.add(new GpuCopy(to + peer * shard + index, from + peer * room + index, piece));
          }
          first.copyAll(all);
        });
  }

  private void measure(String title, long shard, long to, Shape shape) {
    try {
      gpu.fill(to, (byte) 0, shard * peers);
      var first = streams.getFirst();
      Runnable all = () -> enqueueAll(shape);
      var eager = cost(all);
      var eagerGpu = duration(all);
      var right = right(to, shard);
      String recorded;
      try {
        first.beginCapture();
        enqueueAll(shape);
        try (var graph = first.endCapture()) {
          graph.upload(first);
          gpu.fill(to, (byte) 0, shard * peers);
          Runnable launch = () -> graph.launch(first);
          recorded =
              "graph %s on the GPU %s (%d nodes) %s"
                  .formatted(cost(launch), duration(launch), graph.nodes(), right(to, shard));
        }
      } catch (RuntimeException e) {
        recorded = e.getMessage();
        try {
          first.endCapture().close();
        } catch (RuntimeException again) {
          recorded += "; " + again.getMessage();
        }
      }
      System.out.printf(
          "%-30s eager %s on the GPU %s %s | %s%n", title, eager, eagerGpu, right, recorded);
    } catch (RuntimeException e) {
      System.out.printf("%-30s %s%n", title, e.getMessage());
    }
  }

  private void enqueueAll(Shape shape) {
    var first = streams.getFirst();
    first.record(marks.getFirst());
    for (var other : streams.subList(1, streams.size())) {
      other.await(marks.getFirst());
    }
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
      shape.chunk(chunk);
    }
    for (int i = 1; i < streams.size(); i++) {
      streams.get(i).record(marks.get(i));
      first.await(marks.get(i));
    }
  }

  @SuppressWarnings("restricted")
  private String right(long to, long shard) {
    gpu.synchronize();
    var host = gpu.allocatePinned(shard * peers);
    gpu.copy(host, to, shard * peers);
    var bytes = MemorySegment.ofAddress(host).reinterpret(shard * peers);
    for (long i = 0; i < shard * peers; i += 4093) {
      if (bytes.get(ValueLayout.JAVA_BYTE, i) != (byte) (i / shard + 1)) {
        gpu.freePinned(host);
        return "WRONG";
      }
    }
    gpu.freePinned(host);
    return "right";
  }

  private String cost(Runnable call) {
    var micros = new double[ROUNDS];
    for (int round = -ROUNDS; round < ROUNDS; round++) {
      long begun = System.nanoTime();
      call.run();
      double took = (System.nanoTime() - begun) / 1000.0;
      gpu.synchronize();
      if (round >= 0) {
        micros[round] = took;
      }
    }
    return median(micros);
  }

  private String duration(Runnable call) {
    var micros = new double[ROUNDS];
    var first = streams.getFirst();
    for (int round = 0; round < ROUNDS; round++) {
      first.record(begin);
      call.run();
      first.record(end);
      gpu.synchronize();
      micros[round] = end.millisecondsSince(begin) * 1000;
    }
    return median(micros);
  }

  private static String median(double[] micros) {
    Arrays.sort(micros);
    return String.format(
        Locale.ROOT, "%.1f us (p10 %.1f)", micros[micros.length / 2], micros[micros.length / 10]);
  }
}
