package braid.natives.cuda;

import braid.natives.load.BraidNativeMissing;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.bytedeco.cuda.cudart.CUctx_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.jspecify.annotations.Nullable;

/// One device and this process's primary context on it, which is the one that NCCL, cublasLt and
/// the CUDA runtime use too.
public final class Gpu implements AutoCloseable {
  private static final int NAME_BYTES = 256;
  private static final int BUS_ID_BYTES = 32;

  /// Which context is current on a thread, so that asking for it again costs no call.
  private static final ThreadLocal<@Nullable Gpu> CURRENT = new ThreadLocal<>();

  private final int device;
  private final String who;
  private final String name;
  private final CUctx_st context;
  private final int leastPriority;
  private final int greatestPriority;
  private final GpuStream copies;
  private boolean closed;

  private Gpu(int device, String who) {
    this.device = device;
    this.who = who;
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

  /// Why no GPU can be used (no driver, its error, no device), in one line; empty where one can.
  /// Nothing native is loaded before this or `open` is called.
  public static Optional<String> missing() {
    return Driver.missing();
  }

  /// How many devices this process sees; 0 where none can be used.
  public static int count() {
    return Driver.devices();
  }

  /// Retains the device's primary context and makes it current on this thread. `who` is said in
  /// every error, as in "rank 3".
  public static Gpu open(int device, String who) {
    Driver.missing()
        .ifPresent(
            why -> {
              throw new BraidNativeMissing(why);
            });
    if (device < 0 || device >= count()) {
      throw Driver.error(
          "opening device %d of %d".formatted(device, count()),
          cudart.CUDA_ERROR_INVALID_DEVICE,
          who,
          Remedies.of(cudart.CUDA_ERROR_INVALID_DEVICE));
    }
    return new Gpu(device, who);
  }

  /// Makes the context current on this thread. It belongs to the system's thread, which a virtual
  /// one may change between two calls.
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

  /// Who and which device, for messages.
  public String where() {
    return "%s, device %d (%s)".formatted(who, device, name);
  }

  public int multiprocessors() {
    return attribute(cudart.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }

  /// The compute capability without its point: 90 is Hopper.
  public int architecture() {
    return attribute(cudart.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
        + attribute(cudart.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  }

  /// The newest CUDA that the driver knows: 13000 is 13.0.
  public int driverVersion() {
    var version = new int[1];
    check("cuDriverGetVersion", cudart.cuDriverGetVersion(version));
    return version[0];
  }

  /// A `CU_DEVICE_ATTRIBUTE_*`.
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
    use();
    check("cuMemFree", cudart.cuMemFree(address));
  }

  /// Pinned host memory that the device reaches at the same address.
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
    use();
    check("cuMemFreeHost", cudart.cuMemFreeHost(new Address(address)));
  }

  /// Copies between any two addresses; done on return. It waits for nobody's stream, and goes by a
  /// stream of its own because the legacy default stream would wait for all of them.
  public void copy(long to, long from, long bytes) {
    synchronized (copies) {
      copies.copy(to, from, bytes);
      copies.synchronize();
    }
  }

  /// Fills memory of the device; done on return, like `copy`.
  public void fill(long address, byte value, long bytes) {
    synchronized (copies) {
      copies.fill(address, value, bytes);
      copies.synchronize();
    }
  }

  public int leastPriority() {
    return leastPriority;
  }

  /// The smaller number is the greater priority.
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

  /// Throws what went wrong in a call of the driver, if something did.
  public void check(String call, int code) {
    if (code != cudart.CUDA_SUCCESS) {
      throw Driver.error(call, code, where(), Remedies.of(code));
    }
  }

  void checkMemory(String call, int code, long bytes) {
    if (code == cudart.CUDA_ERROR_OUT_OF_MEMORY) {
      use();
      try (var free = new SizeTPointer(1);
          var total = new SizeTPointer(1)) {
        check("cuMemGetInfo", cudart.cuMemGetInfo(free, total));
        throw Driver.error(call, code, where(), Remedies.ofMemory(bytes, free.get(), total.get()));
      }
    }
    check(call, code);
  }

  /// For what gives something back: at the end of the process the driver has taken it already.
  void checkReturn(String call, int code) {
    if (code != cudart.CUDA_ERROR_DEINITIALIZED) {
      check(call, code);
    }
  }

  /// Releases the primary context. What was made with it must be closed before.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    // Each of them whatever the others say; the first failure is the one that is thrown.
    try (Return _ = this::release;
        Return _ = this::leave) {
      copies.close();
    }
  }

  private interface Return extends AutoCloseable {
    @Override
    void close();
  }

  private void leave() {
    CURRENT.remove();
    checkReturn("cuCtxSetCurrent", cudart.cuCtxSetCurrent(null));
  }

  private void release() {
    checkReturn("cuDevicePrimaryCtxRelease", cudart.cuDevicePrimaryCtxRelease(device));
  }

  /// A call that writes a text of the device's into a buffer.
  private interface TextCall {
    int write(byte[] text, int length, int device);
  }

  private String text(String call, int bytes, TextCall of) {
    var text = new byte[bytes];
    var code = of.write(text, bytes, device);
    if (code != cudart.CUDA_SUCCESS) {
      throw Driver.error(call, code, "%s, device %d".formatted(who, device), Remedies.of(code));
    }
    int end = 0;
    while (end < bytes && text[end] != 0) {
      end++;
    }
    return new String(text, 0, end, StandardCharsets.UTF_8);
  }
}
