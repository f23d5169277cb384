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

/// What this process has its GPU do, from `begin` to `end`, of which there is one at a time.
///
/// ```
/// cupti.push(7); kernel.launch(…); cupti.pop();      // the kernel's record has externalId 7
///
/// stream.beginCapture(); cupti.claimNodes(-1);
/// kernel.launch(…);      cupti.claimNodes(7);        // so has that of every replay of it
/// ```
///
/// Graphs are to be captured and instantiated after `begin`: of others, nodes are not known.
public final class Cupti implements AutoCloseable {
  private static final int[] KINDS = {
    ActivityRecords.CONCURRENT_KERNEL,
    ActivityRecords.MEMCPY,
    ActivityRecords.MEMCPY_PEER,
    ActivityRecords.MEMSET,
    // An external id is joined to the record of the call, so there must be one.
    ActivityRecords.DRIVER,
    ActivityRecords.RUNTIME,
    ActivityRecords.EXTERNAL_CORRELATION
  };
  private static final int FORCED = 1;
  private static final GraphNodes NODES = new GraphNodes();
  private static final AtomicBoolean RUNNING = new AtomicBoolean();

  /// Whose an activity is: the id claimed for its node or pushed around its call; what was pushed
  /// around the call that launched it, which in a graph is the replay's; its node and graph, 0
  /// outside graphs. -1 where there is none.
  public record Belonging(long externalId, long launchId, long graphNodeId, int graphId) {}

  /// Something that a stream did. Times are on the clock of `System.nanoTime`.
  public sealed interface Activity {
    Belonging belonging();

    long startNanos();

    long endNanos();

    /// CUPTI's number of the stream, as `Cupti.streamId` tells.
    int streamId();

    /// -1 where there is none.
    default long externalId() {
      return belonging().externalId();
    }
  }

  public record Kernel(
      Belonging belonging,
      long startNanos,
      long endNanos,
      int streamId,
      String name,
      int blocks,
      int threads,
      int registers,
      int sharedBytes)
      implements Activity {
    /// The kernel's name and its grid, such as `ncclDevKernel_AllGather <<<24>>>`: how many blocks
    /// it asks for, which is at most how many multiprocessors it takes from others.
    public String engine() {
      return "%s <<<%d>>>".formatted(name, blocks);
    }
  }

  /// `copyKind` is CUPTI's: 8 within a device, 10 between two. `engine` says what moved the bytes.
  public record Copy(
      Belonging belonging,
      long startNanos,
      long endNanos,
      int streamId,
      long bytes,
      String engine,
      int copyKind,
      int fromDevice,
      int toDevice)
      implements Activity {}

  public record Fill(
      Belonging belonging, long startNanos, long endNanos, int streamId, long bytes, String engine)
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

  /// Begins to record. Everything enqueued before should be done: its records may come, too.
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
    ActivityBuffers.giveBack(ActivityBuffers.take());
    begun = ClockOffset.Reading.take(() -> calls.timestamp(room));
  }

  /// What this thread has CUDA do from now on is `id`'s, until `pop`. They may be nested.
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

  /// The graph nodes created since the last call, by any thread, are `id`'s, in every replay; -1
  /// leaves them to nobody. Returns how many there were.
  public int claimNodes(long id) {
    return NODES.claim(id);
  }

  /// The number by which records name this stream.
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

  /// Waits for the GPU and ends the recording. In the order of their starts.
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

  /// How wrong the times may be against `System.nanoTime`; known after `end`. What CUPTI itself may
  /// be wrong by between GPU and host is not in it.
  public long clockErrorNanos() {
    return clockErrorNanos;
  }

  /// Activities that are missing in what `end` returned.
  public long dropped() {
    return dropped;
  }

  /// Ends the recording, if `end` has not, and throws away what was recorded.
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
      var listening = subscriber;
      if (listening != null) {
        failed = first(failed, (int) calls.unsubscribe.invokeExact(listening));
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
      ActivityBuffers.giveBack(buffers);
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
