package braid.internal.cuda;

import braid.internal.cuda.device.Launch;
import braid.internal.work.Work;
import braid.model.Activity;
import braid.model.Span;
import braid.model.Stage;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import braid.natives.profiling.Cupti;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Records when the GPU ran each operation of a profile: CUPTI reports kernels, copies and fills,
/// and streams register their operations as they enqueue them. [Attribution] joins the two.
public final class Recorder implements AutoCloseable {
  private static final long UNOWNED = -1;

  private final Gpu gpu;
  private volatile @Nullable Recording recording;
  private Attribution.@Nullable Result ended;
  private int count;
  private long clockErrorNanos;
  private long dropped;

  public Recorder(Gpu gpu) {
    this.gpu = gpu;
  }

  /// One profile while it is recorded.
  private static final class Recording {
    private final Cupti cupti;
    private final long originNanos;
    private final List<Attribution.Operation> enqueued = new ArrayList<>();
    private final TreeMap<Long, Integer> turns = new TreeMap<>();
    private int group;
    private int iteration;
    private long ids;

    Recording(Cupti cupti, long originNanos) {
      this.cupti = cupti;
      this.originNanos = originNanos;
    }
  }

  /// Begins a profile of all streams, unless one is recorded.
  public synchronized void begin(long originNanos) {
    gpu.use();
    if (recording == null) {
      recording = new Recording(Cupti.begin(gpu), originNanos);
      ended = null;
      count++;
    }
  }

  /// Number of times that a profile began or ended; graphs are recorded again when it changes.
  public int count() {
    return count;
  }

  /// Assigns the work enqueued from now on to an iteration; all work before is done.
  public void turn(int iteration) {
    // Most iterations are not recorded.
    if (recording != null) {
      beginTurn(iteration);
    }
  }

  private synchronized void beginTurn(int iteration) {
    var current = recording;
    if (current != null) {
      current.turns.putIfAbsent(System.nanoTime(), iteration);
      current.iteration = iteration;
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
  void launch(
      Attribution.Track track,
      Work work,
      Stage stage,
      long bytes,
      long flops,
      boolean intoGraph,
      Launch launch,
      GpuStream stream) {
    var current = recording;
    if (current == null) {
      launch.on(stream);
      return;
    }
    long id;
    synchronized (this) {
      id = ++current.ids;
      current.enqueued.add(
          new Attribution.Operation(
              id,
              track,
              current.group,
              intoGraph ? null : current.iteration,
              work,
              stage,
              bytes,
              flops));
    }
    if (intoGraph) {
      launch.on(stream);
      current.cupti.claimNodes(id);
    } else {
      current.cupti.push(id);
      try {
        launch.on(stream);
      } finally {
        current.cupti.pop();
      }
    }
  }

  /// Registers that the stream's next operation waits for a signal or an event.
  void enqueueWait(Attribution.Track track, Work work) {
    var current = recording;
    if (current != null) {
      synchronized (this) {
        current.enqueued.add(
            new Attribution.Operation(0, track, current.group, null, work, Stage.WAIT, 0, 0));
      }
    }
  }

  /// Returns the stream's spans. The first call ends the profile of all streams.
  synchronized List<Span> end(Attribution.Track track) {
    return end().spans().getOrDefault(track, List.of());
  }

  /// Ends the profile, if one is recorded, and returns the last one.
  synchronized Attribution.Result end() {
    var current = recording;
    if (current != null) {
      recording = null;
      gpu.use();
      ended =
          Attribution.of(current.originNanos, current.turns, current.enqueued, current.cupti.end());
      clockErrorNanos = current.cupti.clockErrorNanos();
      dropped = current.cupti.dropped();
      count++;
    }
    return ended == null ? new Attribution.Result(Map.of(), List.of()) : ended;
  }

  /// Returns the activities of the last profile that belong to no operation.
  synchronized List<Activity> unowned() {
    return ended == null ? List.of() : ended.unowned();
  }

  /// Largest error of the last profile's times against the process's clock.
  public synchronized long clockErrorNanos() {
    return clockErrorNanos;
  }

  /// Number of records that CUPTI dropped in the last profile.
  public synchronized long dropped() {
    return dropped;
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
