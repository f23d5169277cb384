package braid.internal.cuda;

import braid.internal.cuda.device.Launch;
import braid.internal.work.Work;
import braid.model.Span;
import braid.model.Stage;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.profiling.Cupti;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// Records when the GPU ran each operation of a profile: CUPTI reports the times of kernels and
/// copies, and streams register their operations as they enqueue them.
///
/// Waits have no CUPTI record: a wait is the time between the operations before and after it.
public final class Recorder implements AutoCloseable {
  /// Shorter gaps between two operations are launch overhead of the GPU.
  private static final long LEAST_WAIT_NANOS = 2_000;

  private static final long UNOWNED = -1;

  private final Gpu gpu;
  private final Set<String> open = ConcurrentHashMap.newKeySet();
  private volatile @Nullable Recording recording;
  private @Nullable Map<String, List<Span>> ended;
  private int count;
  private long clockErrorNanos;
  private long dropped;

  public Recorder(Gpu gpu) {
    this.gpu = gpu;
  }

  /// One enqueued operation, in the order of enqueuing. `id` is 0 for a wait.
  private record Enqueued(
      long id, String stream, int group, Work work, Stage stage, long bytes, long flops) {}

  /// One profile while it is recorded.
  private static final class Recording {
    private final Cupti cupti;
    private final long originNanos;
    private final List<Enqueued> enqueued = new ArrayList<>();
    private final TreeMap<Long, Integer> turns = new TreeMap<>();
    private int group;
    private long ids;

    Recording(Cupti cupti, long originNanos) {
      this.cupti = cupti;
      this.originNanos = originNanos;
    }
  }

  /// Begins recording the stream's operations.
  public synchronized void begin(String stream, long originNanos) {
    gpu.use();
    if (recording == null) {
      recording = new Recording(Cupti.begin(gpu), originNanos);
      ended = null;
      count++;
    }
    open.add(stream);
  }

  /// Number of times that a profile began or ended; graphs are recorded again when it changes.
  public int count() {
    return count;
  }

  /// Assigns the work enqueued from now on to an iteration; all work before is done.
  public void turn(int iteration) {
    // Most iterations are not recorded.
    if (recording != null) {
      begin(iteration);
    }
  }

  private synchronized void begin(int iteration) {
    var current = recording;
    if (current != null) {
      current.turns.putIfAbsent(System.nanoTime(), iteration);
      current.group++;
    }
  }

  /// Begins recording into a graph, whose operations run at every replay.
  public synchronized void beginGraph() {
    var current = recording;
    if (current != null) {
      current.group++;
      // Nodes recorded before belong to no operation.
      var _ = current.cupti.claimNodes(UNOWNED);
    }
  }

  /// Enqueues an operation and registers it with the profile, if one is recorded.
  public void launch(
      String stream,
      Work work,
      Stage stage,
      long bytes,
      long flops,
      boolean intoGraph,
      Launch launch,
      GpuStream on) {
    var current = recording;
    if (current == null) {
      launch.on(on);
      return;
    }
    long id;
    synchronized (this) {
      id = ++current.ids;
      current.enqueued.add(new Enqueued(id, stream, current.group, work, stage, bytes, flops));
    }
    if (intoGraph) {
      launch.on(on);
      current.cupti.claimNodes(id);
    } else {
      current.cupti.push(id);
      try {
        launch.on(on);
      } finally {
        current.cupti.pop();
      }
    }
  }

  /// Registers that the stream's next operation waits for a signal or an event.
  public void enqueueWait(String stream, Work work) {
    var current = recording;
    if (current != null) {
      synchronized (this) {
        current.enqueued.add(new Enqueued(0, stream, current.group, work, Stage.WAIT, 0, 0));
      }
    }
  }

  /// Returns the stream's spans. The first call ends the profile of all streams.
  public synchronized List<Span> end(String stream) {
    open.remove(stream);
    var current = recording;
    if (current != null) {
      recording = null;
      gpu.use();
      ended = spans(current, current.cupti.end());
      clockErrorNanos = current.cupti.clockErrorNanos();
      dropped = current.cupti.dropped();
      count++;
    }
    var all = ended;
    return all == null ? List.of() : all.getOrDefault(stream, List.of());
  }

  /// Largest error of the last profile's times against the process's clock.
  public synchronized long clockErrorNanos() {
    return clockErrorNanos;
  }

  /// Number of records that CUPTI dropped in the last profile.
  public synchronized long dropped() {
    return dropped;
  }

  /// Times of one operation in one iteration, and the engine that ran it.
  private record Execution(long start, long end, String description) {
    Execution with(Cupti.Activity other) {
      boolean longer = other.endNanos() - other.startNanos() > end - start;
      return new Execution(
          Math.min(start, other.startNanos()),
          Math.max(end, other.endNanos()),
          longer ? description(other) : description);
    }

    static String description(Cupti.Activity activity) {
      return switch (activity) {
        case Cupti.Kernel kernel -> kernel.engine();
        case Cupti.Copy copy -> copy.engine();
        case Cupti.Fill fill -> "fill: " + fill.engine();
      };
    }
  }

  private static Map<String, List<Span>> spans(
      Recording recording, List<Cupti.Activity> activities) {
    var byIteration = new TreeMap<Integer, Map<Long, Execution>>();
    for (var each : activities) {
      var turn = recording.turns.floorEntry(each.startNanos());
      if (each.externalId() != UNOWNED && turn != null) {
        byIteration
            .computeIfAbsent(turn.getValue(), _ -> new HashMap<>())
            .merge(
                each.externalId(),
                new Execution(each.startNanos(), each.endNanos(), Execution.description(each)),
                (before, _) -> before.with(each));
      }
    }
    var spans = new HashMap<String, List<Span>>();
    byIteration.forEach(
        (iteration, executions) -> {
          long begin = begin(recording, iteration);
          var ends = new HashMap<String, Long>();
          var waiting = new HashMap<String, Work>();
          int group = groupOf(recording, executions.keySet());
          for (var entry : recording.enqueued) {
            if (entry.group() != group) {
              continue;
            }
            if (entry.stage() == Stage.WAIT) {
              waiting.put(entry.stream(), entry.work());
              continue;
            }
            var when = executions.get(entry.id());
            if (when == null) {
              continue;
            }
            var list = spans.computeIfAbsent(entry.stream(), _ -> new ArrayList<>());
            long before = ends.getOrDefault(entry.stream(), begin);
            var waited = waiting.remove(entry.stream());
            if (waited != null && when.start() - before > LEAST_WAIT_NANOS) {
              list.add(
                  span(recording, iteration, entry, Stage.WAIT, before, when.start(), waited, ""));
            }
            list.add(
                span(
                    recording,
                    iteration,
                    entry,
                    entry.stage(),
                    when.start(),
                    when.end(),
                    entry.work(),
                    when.description()));
            ends.merge(entry.stream(), when.end(), Math::max);
          }
        });
    return spans;
  }

  private static int groupOf(Recording recording, Set<Long> ids) {
    return recording.enqueued.stream()
        .filter(entry -> ids.contains(entry.id()))
        .mapToInt(Enqueued::group)
        .max()
        .orElse(0);
  }

  private static long begin(Recording recording, int iteration) {
    return recording.turns.entrySet().stream()
        .filter(turn -> turn.getValue() == iteration)
        .mapToLong(Map.Entry::getKey)
        .min()
        .orElse(recording.originNanos);
  }

  private static Span span(
      Recording recording,
      int iteration,
      Enqueued entry,
      Stage stage,
      long start,
      long end,
      Work work,
      String description) {
    boolean waits = stage == Stage.WAIT;
    return new Span(
        iteration,
        work.chunk(),
        stage,
        entry.stream(),
        start - recording.originNanos,
        end - recording.originNanos,
        waits ? 0 : entry.bytes(),
        waits ? 0 : entry.flops(),
        description,
        work.label().get());
  }

  @Override
  public synchronized void close() {
    var current = recording;
    recording = null;
    if (current != null) {
      current.cupti.close();
    }
  }
}
