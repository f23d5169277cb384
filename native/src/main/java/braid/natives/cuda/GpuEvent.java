package braid.natives.cuda;

import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.global.cudart;

/// A mark in a stream that other streams can await. Timing makes events slower, so it is off by
/// default.
public final class GpuEvent implements AutoCloseable {
  private final Gpu gpu;
  private final CUevent_st event;
  private boolean closed;

  private GpuEvent(Gpu gpu, CUevent_st event) {
    this.gpu = gpu;
    this.event = event;
  }

  static GpuEvent create(Gpu gpu, boolean timed) {
    gpu.use();
    var event = new CUevent_st();
    gpu.check(
        "cuEventCreate",
        cudart.cuEventCreate(
            event, timed ? cudart.CU_EVENT_DEFAULT : cudart.CU_EVENT_DISABLE_TIMING));
    return new GpuEvent(gpu, event);
  }

  public CUevent_st pointer() {
    return event;
  }

  /// Returns true if the stream has passed the event. An event that was never recorded is done.
  public boolean isDone() {
    gpu.use();
    int code = cudart.cuEventQuery(event);
    if (code == cudart.CUDA_ERROR_NOT_READY) {
      return false;
    }
    gpu.check("cuEventQuery", code);
    return true;
  }

  /// Time between two timed events that are done.
  public float millisecondsSince(GpuEvent earlier) {
    gpu.use();
    var milliseconds = new float[1];
    gpu.check("cuEventElapsedTime", cudart.cuEventElapsedTime(milliseconds, earlier.event, event));
    return milliseconds[0];
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.use();
      gpu.checkReturn("cuEventDestroy", cudart.cuEventDestroy(event));
    }
  }
}
