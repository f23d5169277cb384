package braid.natives.cuda;

import braid.natives.load.Feature;
import java.util.List;
import org.bytedeco.cuda.cudart.CUDA_MEMCPY2D_v2;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;

/// A stream that does not synchronize with the legacy default stream. For one thread at a time:
/// native argument buffers are allocated once and reused.
public final class GpuStream implements AutoCloseable {
  private final Gpu gpu;
  private final CUstream_st stream;
  private final OperationBatch batch = new OperationBatch();
  private final CopyBatch copies = new CopyBatch();
  private final CUDA_MEMCPY2D_v2 rowCopy = zeroed();
  private final boolean batches;
  private final LaunchArguments arguments = new LaunchArguments();
  private boolean closed;

  private GpuStream(Gpu gpu, CUstream_st stream) {
    this.gpu = gpu;
    this.stream = stream;
    this.batches = Feature.COPY_BATCHES.isIn(Feature.cuda(gpu.driverVersion()));
  }

  /// Returns a copy descriptor whose offsets are 0; no call sets them.
  private static CUDA_MEMCPY2D_v2 zeroed() {
    var copy = new CUDA_MEMCPY2D_v2();
    copy.zero();
    return copy;
  }

  static GpuStream create(Gpu gpu, int priority) {
    gpu.use();
    var stream = new CUstream_st();
    gpu.check(
        "cuStreamCreateWithPriority",
        cudart.cuStreamCreateWithPriority(stream, cudart.CU_STREAM_NON_BLOCKING, priority));
    return new GpuStream(gpu, stream);
  }

  /// Address of the `CUstream`, for other libraries.
  public long address() {
    return stream.address();
  }

  public CUstream_st pointer() {
    return stream;
  }

  /// Copies between any two addresses that this device reaches: its own memory, a peer's, or pinned
  /// host memory.
  public void copy(long to, long from, long bytes) {
    gpu.use();
    gpu.check("cuMemcpyAsync", cudart.cuMemcpyAsync(to, from, bytes, stream));
  }

  /// Enqueues independent copies, in one driver call if it is supported. Several copy engines may
  /// then run them at once. Such a call cannot be captured.
  public void copyAll(List<GpuCopy> all) {
    if (all.size() < 2 || !batches) {
      all.forEach(each -> copy(each.to(), each.from(), each.bytes()));
      return;
    }
    gpu.use();
    int count = all.size();
    for (int done = 0; done < count; ) {
      int some = Math.min(count - done, CopyBatch.MOST);
      gpu.check("cuMemcpyBatchAsync", copies.enqueue(all, done, some, this));
      done += some;
    }
  }

  /// Copies rows that begin a pitch apart on either side, between any two addresses that this
  /// device reaches.
  public void copyRows(long to, long toPitch, long from, long fromPitch, long rowBytes, long rows) {
    gpu.use();
    rowCopy
        .srcMemoryType(cudart.CU_MEMORYTYPE_UNIFIED)
        .srcDevice(from)
        .srcPitch(fromPitch)
        .dstMemoryType(cudart.CU_MEMORYTYPE_UNIFIED)
        .dstDevice(to)
        .dstPitch(toPitch)
        .WidthInBytes(rowBytes)
        .Height(rows);
    gpu.check("cuMemcpy2DAsync", cudart.cuMemcpy2DAsync(rowCopy, stream));
  }

  public void fill(long address, byte value, long bytes) {
    gpu.use();
    gpu.check("cuMemsetD8Async", cudart.cuMemsetD8Async(address, value, bytes, stream));
  }

  /// Fills rows that begin `pitch` bytes apart.
  public void fill(long address, long pitch, byte value, long rowBytes, long rows) {
    gpu.use();
    gpu.check(
        "cuMemsetD2D8Async",
        cudart.cuMemsetD2D8Async(address, pitch, value, rowBytes, rows, stream));
  }

  /// Writes a 64-bit word after all earlier work is done and visible to readers of the word.
  public void write(long address, long value) {
    gpu.use();
    gpu.check(
        "cuStreamWriteValue64",
        cudart.cuStreamWriteValue64(stream, address, value, cudart.CU_STREAM_WRITE_VALUE_DEFAULT));
  }

  /// Blocks later work until the word is at least `value`, compared as signed numbers that may
  /// wrap.
  public void awaitAtLeast(long address, long value) {
    gpu.use();
    gpu.check(
        "cuStreamWaitValue64",
        cudart.cuStreamWaitValue64(stream, address, value, cudart.CU_STREAM_WAIT_VALUE_GEQ));
  }

  /// Enqueues writes and waits in order, in one driver call per 64 of them.
  public void memoryOperations(List<MemoryOperation> all) {
    gpu.use();
    int count = all.size();
    for (int done = 0; done < count; ) {
      int some = Math.min(count - done, OperationBatch.MOST);
      for (int i = 0; i < some; i++) {
        batch.set(i, all.get(done + i));
      }
      gpu.check("cuStreamBatchMemOp", cudart.cuStreamBatchMemOp(stream, some, batch.pointer(), 0));
      done += some;
    }
  }

  public void record(GpuEvent event) {
    gpu.use();
    gpu.check("cuEventRecord", cudart.cuEventRecord(event.pointer(), stream));
  }

  /// Blocks later work until the event's last recorded work is done.
  public void await(GpuEvent event) {
    gpu.use();
    gpu.check(
        "cuStreamWaitEvent",
        cudart.cuStreamWaitEvent(stream, event.pointer(), cudart.CU_EVENT_WAIT_DEFAULT));
  }

  public boolean isDone() {
    gpu.use();
    int code = cudart.cuStreamQuery(stream);
    if (code == cudart.CUDA_ERROR_NOT_READY) {
      return false;
    }
    gpu.check("cuStreamQuery", code);
    return true;
  }

  public void synchronize() {
    gpu.use();
    gpu.check("cuStreamSynchronize", cudart.cuStreamSynchronize(stream));
  }

  /// Starts to capture work instead of running it. Only forbidden calls of this thread invalidate
  /// the capture; other threads may allocate meanwhile. Memory that any thread frees is kept until
  /// the capture has ended.
  public void beginCapture() {
    gpu.use();
    gpu.releases().beginCapture();
    try {
      gpu.check(
          "cuStreamBeginCapture",
          cudart.cuStreamBeginCapture(stream, cudart.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    } catch (RuntimeException | Error e) {
      gpu.releases().endCapture();
      throw e;
    }
  }

  /// Ends the capture and returns the captured work, ready to launch. The capture has ended even if
  /// this throws.
  public GpuGraph endCapture() {
    gpu.use();
    var template = new CUgraph_st();
    try (Captured _ = gpu.releases()::endCapture) {
      gpu.check("cuStreamEndCapture", cudart.cuStreamEndCapture(stream, template));
      return GpuGraph.of(gpu, template);
    }
  }

  /// Closed when a capture has ended.
  private interface Captured extends AutoCloseable {
    @Override
    void close();
  }

  LaunchArguments arguments() {
    return arguments;
  }

  /// Destroys the stream; work in flight still finishes.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.use();
      gpu.checkReturn("cuStreamDestroy", cudart.cuStreamDestroy(stream));
      copies.close();
      rowCopy.close();
    }
  }
}
