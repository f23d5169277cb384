package braid.natives.profiling;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Records this process's GPU activity from `begin` to `end`. There is one recording at a time.
///
/// ```
/// cupti.push(7); kernel.launch(…); cupti.pop();      // the kernel's record has externalId 7
///
/// stream.beginCapture(); cupti.claimNodes(-1);
/// kernel.launch(…);      cupti.claimNodes(7);        // so has that of every replay of it
/// ```
///
/// Capture and instantiate graphs after `begin`: nodes of earlier graphs are unknown.
public final class Cupti implements AutoCloseable {
  private static final int[] KINDS = {
    ActivityRecords.CONCURRENT_KERNEL,
    ActivityRecords.MEMCPY,
    ActivityRecords.MEMCPY_PEER,
    ActivityRecords.MEMSET,
    // An external id is joined to the record of a call, so calls must be recorded.
    ActivityRecords.DRIVER,
    ActivityRecords.RUNTIME,
    ActivityRecords.EXTERNAL_CORRELATION
  };
  private static final int FORCED = 1;
  private static final GraphNodes NODES = new GraphNodes();
  private static final AtomicBoolean RUNNING = new AtomicBoolean();

  /// Owner of an activity: the id claimed for its node or pushed around its call; the id pushed
  /// around its launch, which for a graph is the replay's; its node and graph, 0 outside graphs. An
  /// absent id is -1.
  public record Correlation(long externalId, long launchId, long graphNodeId, int graphId) {}

  /// Work of a stream. Times are on the clock of `System.nanoTime`.
  public sealed interface Activity {
    Correlation correlation();

    long startNanos();

    long endNanos();

    /// CUPTI's number of the stream, as `Cupti.streamId` returns.
    int streamId();

    /// Id of the owner; -1 if unknown.
    default long externalId() {
      return correlation().externalId();
    }
  }

  public record Kernel(
      Correlation correlation,
      long startNanos,
      long endNanos,
      int streamId,
      String name,
      int blocks)
      implements Activity {
    /// Returns the kernel's name and grid, such as `ncclDevKernel_AllGather <<<24>>>`. The number
    /// of blocks bounds the multiprocessors that it takes from others.
    public String engine() {
      return "%s <<<%d>>>".formatted(name, blocks);
    }
  }

  /// A copy. `copyKind` is CUPTI's: 8 within a device, 10 between two. `engine` names the hardware
  /// that moved the bytes.
  public record Copy(
      Correlation correlation,
      long startNanos,
      long endNanos,
      int streamId,
      long bytes,
      String engine,
      int copyKind)
      implements Activity {}

  public record Fill(
      Correlation correlation,
      long startNanos,
      long endNanos,
      int streamId,
      long bytes,
      String engine)
      implements Activity {}

  private final Gpu gpu;
  private final CuptiCalls calls;
  private final MemorySegment room = Arena.ofAuto().allocate(JAVA_LONG);
  private @Nullable MemorySegment subscriber;
  private ClockOffset.@Nullable Reading begun;
  private long clockErrorNanos = -1;
  private long dropped;
  private boolean ended;

  private Cupti(Gpu gpu, CuptiCalls calls) {
    this.gpu = gpu;
    this.calls = calls;
  }

  /// Begins to record. Finish all earlier work before: its records may otherwise be included.
  public static Cupti begin(Gpu gpu) {
    var calls = CuptiCalls.load();
    if (!RUNNING.compareAndSet(false, true)) {
      throw new IllegalStateException(
          "a profile is running in this process; end it before the next one begins");
    }
    gpu.use();
    var cupti = new Cupti(gpu, calls);
    try {
      cupti.enable();
      return cupti;
    } catch (Throwable e) {
      try {
        cupti.close();
      } catch (RuntimeException second) {
        e.addSuppressed(second);
      }
      throw ForeignLibrary.unexpected(e);
    }
  }

  private void enable() throws Throwable {
    ActivityBuffers.register(calls);
    subscriber = NODES.subscribe(calls, gpu.where());
    for (var kind : KINDS) {
      check("cuptiActivityEnable(" + kind + ")", (int) calls.enable.invokeExact(kind));
    }
    ActivityBuffers.recycle(ActivityBuffers.take());
    begun = ClockOffset.Reading.take(() -> calls.timestamp(room));
  }

  /// Attributes CUDA calls of this thread to `id`, until `pop`. Calls nest.
  public void push(long id) {
    try {
      check(
          "cuptiActivityPushExternalCorrelationId",
          (int) calls.push.invokeExact(ActivityRecords.EXTERNAL_KIND, id));
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  public void pop() {
    try {
      check(
          "cuptiActivityPopExternalCorrelationId",
          (int) calls.pop.invokeExact(ActivityRecords.EXTERNAL_KIND, MemorySegment.NULL));
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Attributes all graph nodes created since the last call, by any thread, to `id` in every
  /// replay; -1 attributes them to nothing. Returns their number.
  public int claimNodes(long id) {
    return NODES.claim(id);
  }

  /// Returns the number of this stream in records.
  public int streamId(GpuStream stream) {
    try {
      check(
          "cuptiGetStreamIdEx",
          (int) calls.streamId.invokeExact(MemorySegment.NULL, stream.address(), (byte) 0, room));
      return room.get(JAVA_INT, 0);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Waits for the GPU, ends the recording, and returns the activities in order of their start.
  public List<Activity> end() {
    if (ended || begun == null) {
      throw new IllegalStateException("the profile has ended; begin another one");
    }
    var first = begun;
    gpu.use();
    gpu.synchronize();
    try {
      check("cuptiActivityFlushAll", (int) calls.flush.invokeExact(FORCED));
      var offset = new ClockOffset(first, ClockOffset.Reading.take(() -> calls.timestamp(room)));
      clockErrorNanos = offset.errorNanos();
      dropped = droppedByCupti();
      close();
      return activities(new ActivityRecords(NODES, offset::nano));
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    } finally {
      close();
    }
  }

  /// Upper bound of the error of times against `System.nanoTime`, known after `end`. CUPTI's own
  /// error between GPU and host is not included.
  public long clockErrorNanos() {
    return clockErrorNanos;
  }

  /// Number of activities missing from the result of `end`.
  public long dropped() {
    return dropped;
  }

  /// Ends the recording if `end` has not, and discards it.
  @Override
  public void close() {
    if (ended) {
      return;
    }
    ended = true;
    try {
      var failed = CuptiCalls.SUCCESS;
      for (var kind : KINDS) {
        failed = first(failed, (int) calls.disable.invokeExact(kind));
      }
      failed = first(failed, (int) calls.flush.invokeExact(FORCED));
      var current = subscriber;
      if (current != null) {
        failed = first(failed, (int) calls.unsubscribe.invokeExact(current));
      }
      check("ending a profile", failed);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    } finally {
      RUNNING.set(false);
    }
  }

  private static int first(int failed, int code) {
    return failed == CuptiCalls.SUCCESS ? code : failed;
  }

  private List<Activity> activities(ActivityRecords records) throws Throwable {
    var buffers = ActivityBuffers.take();
    try (var slots = Arena.ofConfined()) {
      var slot = slots.allocate(ADDRESS);
      for (var filled : buffers) {
        slot.set(ADDRESS, 0, MemorySegment.NULL);
        var code = CuptiCalls.SUCCESS;
        while (code == CuptiCalls.SUCCESS) {
          code = (int) calls.nextRecord.invokeExact(filled.buffer(), filled.validBytes(), slot);
          if (code == CuptiCalls.SUCCESS) {
            records.add(slot.get(ADDRESS, 0));
          } else if (code != CuptiCalls.NO_MORE_RECORDS) {
            check("cuptiActivityGetNextRecord", code);
          }
        }
      }
      var all = records.all();
      dropped += records.untimed();
      return all;
    } finally {
      ActivityBuffers.recycle(buffers);
    }
  }

  private long droppedByCupti() throws Throwable {
    check(
        "cuptiActivityGetNumDroppedRecords",
        (int) calls.droppedRecords.invokeExact(MemorySegment.NULL, 0, room));
    return room.get(JAVA_LONG, 0);
  }

  private void check(String call, int code) {
    calls.check(call, code, gpu.where());
  }
}
