package braid.natives.cuda;

import braid.natives.load.BraidNativeMissing;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.function.IntSupplier;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;

/// One device and this process's primary context on it. NCCL, cublasLt and the CUDA runtime use the
/// same context.
public final class Gpu implements AutoCloseable {
  private static final int NAME_BYTES = 256;
  private static final int BUS_ID_BYTES = 32;

  /// Context that is current on a thread, so that using it again costs no call.
  private static final ThreadLocal<@Nullable Gpu> CURRENT = new ThreadLocal<>();

  private final int device;
  private final String owner;
  private final String name;
  private final CUctx_st context;
  private final int leastPriority;
  private final int greatestPriority;
  private final GpuStream copies;
  private final Releases releases = new Releases();
  private boolean closed;

  private Gpu(int device, String owner) {
    this.device = device;
    this.owner = owner;
    this.name = text("cuDeviceGetName", NAME_BYTES, cudart::cuDeviceGetName);
    this.context = new CUctx_st();
    check("cuDevicePrimaryCtxRetain", cudart.cuDevicePrimaryCtxRetain(context, device));
    use();
    var least = new int[1];
    var greatest = new int[1];
    check("cuCtxGetStreamPriorityRange", cudart.cuCtxGetStreamPriorityRange(least, greatest));
    this.leastPriority = least[0];
    this.greatestPriority = greatest[0];
    this.copies = GpuStream.create(this, leastPriority);
  }

  /// Returns why no GPU is usable (no driver, its error, no device), in one line; empty if one is.
  /// No native library is loaded before this or `open` is called.
  public static Optional<String> missing() {
    return Driver.missing();
  }

  /// Number of devices that this process sees; 0 if none is usable.
  public static int count() {
    return Driver.devices();
  }

  /// Retains the device's primary context and makes it current on this thread. Every error names
  /// `owner`, such as "rank 3".
  public static Gpu open(int device, String owner) {
    Driver.missing()
        .ifPresent(
            reason -> {
              throw new BraidNativeMissing(reason);
            });
    if (device < 0 || device >= count()) {
      throw Driver.error(
          "opening device %d of %d".formatted(device, count()),
          cudart.CUDA_ERROR_INVALID_DEVICE,
          owner,
          Remedies.of(cudart.CUDA_ERROR_INVALID_DEVICE));
    }
    return new Gpu(device, owner);
  }

  /// Makes the context current on this thread. The context belongs to the carrier thread, which a
  /// virtual thread may change between two calls.
  public void use() {
    if (CURRENT.get() != this || Thread.currentThread().isVirtual()) {
      check("cuCtxSetCurrent", cudart.cuCtxSetCurrent(context));
      CURRENT.set(this);
    }
  }

  public int device() {
    return device;
  }

  public String name() {
    return name;
  }

  public String pciBusId() {
    return text("cuDeviceGetPCIBusId", BUS_ID_BYTES, cudart::cuDeviceGetPCIBusId);
  }

  /// Owner and device, for messages.
  public String where() {
    return "%s, device %d (%s)".formatted(owner, device, name);
  }

  public int multiprocessors() {
    return attribute(cudart.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }

  /// Compute capability without its point: 90 is Hopper.
  public int architecture() {
    return attribute(cudart.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
        + attribute(cudart.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  }

  /// Newest CUDA version that the driver supports: 13000 is 13.0.
  public int driverVersion() {
    var version = new int[1];
    check("cuDriverGetVersion", cudart.cuDriverGetVersion(version));
    return version[0];
  }

  /// Value of a `CU_DEVICE_ATTRIBUTE_*`.
  public int attribute(int attribute) {
    var value = new int[1];
    check("cuDeviceGetAttribute", cudart.cuDeviceGetAttribute(value, attribute, device));
    return value[0];
  }

  public long allocate(long bytes) {
    use();
    var address = new long[1];
    checkMemory("cuMemAlloc", cudart.cuMemAlloc(address, bytes), bytes);
    return address[0];
  }

  public void free(long address) {
    release("cuMemFree", () -> cudart.cuMemFree(address));
  }

  /// Allocates pinned host memory that the device reaches at the same address.
  public long allocatePinned(long bytes) {
    use();
    var host = new Pointer();
    check(
        "cuMemHostAlloc",
        cudart.cuMemHostAlloc(
            host, bytes, cudart.CU_MEMHOSTALLOC_PORTABLE | cudart.CU_MEMHOSTALLOC_DEVICEMAP));
    return host.address();
  }

  public void freePinned(long address) {
    release("cuMemFreeHost", () -> cudart.cuMemFreeHost(new Address(address)));
  }

  /// Copies between any two addresses and returns when the copy is done. It uses a stream of its
  /// own, because the legacy default stream would wait for all others.
  public void copy(long to, long from, long bytes) {
    synchronized (copies) {
      copies.copy(to, from, bytes);
      copies.synchronize();
    }
  }

  /// Fills device memory and returns when it is filled.
  public void fill(long address, byte value, long bytes) {
    synchronized (copies) {
      copies.fill(address, value, bytes);
      copies.synchronize();
    }
  }

  public int leastPriority() {
    return leastPriority;
  }

  /// Greatest stream priority, which is the smallest number.
  public int greatestPriority() {
    return greatestPriority;
  }

  public GpuStream stream(int priority) {
    return GpuStream.create(this, priority);
  }

  public GpuEvent event(boolean timed) {
    return GpuEvent.create(this, timed);
  }

  /// Loads a cubin or PTX.
  public GpuModule load(byte[] image) {
    return GpuModule.load(this, image);
  }

  /// Waits for all work of this context.
  public void synchronize() {
    use();
    check("cuCtxSynchronize", cudart.cuCtxSynchronize());
  }

  public VirtualMemory.Granularity granularity() {
    return VirtualMemory.granularity(this);
  }

  /// Throws a [GpuError] if the driver call failed.
  public void check(String call, int code) {
    if (code != cudart.CUDA_SUCCESS) {
      throw Driver.error(call, code, where(), Remedies.of(code));
    }
  }

  /// Bytes of this device's memory that no process uses.
  public long freeBytes() {
    return memoryInfo()[0];
  }

  /// Returns the free and the total bytes of the device's memory.
  private long[] memoryInfo() {
    use();
    try (var free = new SizeTPointer(1);
        var total = new SizeTPointer(1)) {
      check("cuMemGetInfo", cudart.cuMemGetInfo(free, total));
      return new long[] {free.get(), total.get()};
    }
  }

  void checkMemory(String call, int code, long bytes) {
    if (code == cudart.CUDA_ERROR_OUT_OF_MEMORY) {
      var memory = memoryInfo();
      throw Driver.error(call, code, where(), Remedies.ofMemory(bytes, memory[0], memory[1]));
    }
    check(call, code);
  }

  /// Runs code that frees memory of the device, or keeps it until no stream captures.
  public void release(Runnable release) {
    releases.run(release);
  }

  /// Makes a driver call that frees memory of the device, or keeps it until no stream captures.
  void release(String call, IntSupplier driverCall) {
    release(
        () -> {
          use();
          checkReturn(call, driverCall.getAsInt());
        });
  }

  Releases releases() {
    return releases;
  }

  /// Checks a call that releases something. At the end of the process the driver has released it
  /// already.
  void checkReturn(String call, int code) {
    if (code != cudart.CUDA_ERROR_DEINITIALIZED) {
      check(call, code);
    }
  }

  /// Releases the primary context. Everything created in it must be closed before.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    // Every step runs even if another fails; the first failure is thrown.
    try (Cleanup _ = this::release;
        Cleanup _ = this::clearCurrent) {
      copies.close();
    }
  }

  private interface Cleanup extends AutoCloseable {
    @Override
    void close();
  }

  private void clearCurrent() {
    CURRENT.remove();
    checkReturn("cuCtxSetCurrent", cudart.cuCtxSetCurrent(null));
  }

  private void release() {
    checkReturn("cuDevicePrimaryCtxRelease", cudart.cuDevicePrimaryCtxRelease(device));
  }

  /// A driver call that writes a text of the device into a buffer.
  private interface TextCall {
    int write(byte[] text, int length, int device);
  }

  private String text(String call, int bytes, TextCall query) {
    var text = new byte[bytes];
    var code = query.write(text, bytes, device);
    if (code != cudart.CUDA_SUCCESS) {
      throw Driver.error(call, code, "%s, device %d".formatted(owner, device), Remedies.of(code));
    }
    int end = 0;
    while (end < bytes && text[end] != 0) {
      end++;
    }
    return new String(text, 0, end, StandardCharsets.UTF_8);
  }
}
