package braid.natives.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// NVIDIA's management library, which comes with the driver. Unlike CUDA it counts and describes
/// GPUs without a context on them, so a process that only starts ranks may ask it.
@SuppressWarnings("restricted")
public final class Nvml implements AutoCloseable {
  private static final String LIBRARY = "libnvidia-ml.so.1";
  private static final String HANDLE = "nvmlDeviceGetHandleByIndex_v2";

  private static final int SUCCESS = 0;
  private static final int NOT_SUPPORTED = 3;
  private static final int NO_PERMISSION = 4;
  private static final int TEXT_BYTES = 96;

  /// More than any GPU has: what is past the last link is answered by an error.
  private static final int MOST_LINKS = 36;

  private static final int PEER_READ = 0;
  private static final int PEER_NVLINK = 2;
  private static final int PEER_OK = 0;

  /// Total, free and used bytes.
  private static final MemoryLayout MEMORY = MemoryLayout.sequenceLayout(3, JAVA_LONG);

  private static final FunctionDescriptor NOTHING_GIVEN = FunctionDescriptor.of(JAVA_INT);
  private static final FunctionDescriptor ONE_OUT = FunctionDescriptor.of(JAVA_INT, ADDRESS);
  private static final FunctionDescriptor TEXT_OUT =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT);
  private static final FunctionDescriptor HANDLE_OF =
      FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS);
  private static final FunctionDescriptor TEXT_OF =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
  private static final FunctionDescriptor ONE_OF =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS);
  private static final FunctionDescriptor TWO_OF =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
  private static final FunctionDescriptor LINK_OF =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS);
  private static final FunctionDescriptor PEERS_OF =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, ADDRESS);
  private static final FunctionDescriptor WORDS_OF = FunctionDescriptor.of(ADDRESS, JAVA_INT);

  private final Arena arena = Arena.ofShared();
  private final SymbolLookup library;

  private Nvml(String file) throws NvmlFailed {
    try {
      library =
          file.contains("/")
              ? SymbolLookup.libraryLookup(Path.of(file), arena)
              : SymbolLookup.libraryLookup(file, arena);
    } catch (IllegalArgumentException e) {
      arena.close();
      throw new NvmlFailed(
          "%s cannot be loaded: it comes with the NVIDIA driver; install that, or give the container its GPUs (--gpus all)"
              .formatted(file));
    }
  }

  /// Loads the driver's library and starts it.
  public static Nvml open() throws NvmlFailed {
    return open(LIBRARY);
  }

  /// @param file the library by its name, or by its path
  static Nvml open(String file) throws NvmlFailed {
    var nvml = new Nvml(file);
    try {
      nvml.call("nvmlInit_v2", NOTHING_GIVEN);
      return nvml;
    } catch (NvmlFailed e) {
      nvml.arena.close();
      throw e;
    }
  }

  /// For example 580.95.05.
  public String driverVersion() throws NvmlFailed {
    try (var scratch = Arena.ofConfined()) {
      var text = scratch.allocate(TEXT_BYTES);
      call("nvmlSystemGetDriverVersion", TEXT_OUT, text, TEXT_BYTES);
      return text.getString(0);
    }
  }

  /// The newest CUDA that the driver knows, for example 13000 for 13.0.
  public int cudaVersion() throws NvmlFailed {
    return number("nvmlSystemGetCudaDriverVersion_v2");
  }

  /// The GPUs that this process may use. `CUDA_VISIBLE_DEVICES` does not matter here.
  public List<GpuFacts> gpus() throws NvmlFailed {
    var gpus = new ArrayList<GpuFacts>();
    int count = number("nvmlDeviceGetCount_v2");
    for (int index = 0; index < count; index++) {
      gpu(index).ifPresent(gpus::add);
    }
    return gpus;
  }

  /// Empty where this process may not use it: those are counted too.
  private Optional<GpuFacts> gpu(int index) throws NvmlFailed {
    try (var scratch = Arena.ofConfined()) {
      var at = scratch.allocate(ADDRESS);
      int code = result(HANDLE, HANDLE_OF, index, at);
      if (code == NO_PERMISSION) {
        return Optional.empty();
      }
      if (code != SUCCESS) {
        throw failed(HANDLE, code);
      }
      var gpu = at.get(ADDRESS, 0);
      var text = scratch.allocate(TEXT_BYTES);
      call("nvmlDeviceGetName", TEXT_OF, gpu, text, TEXT_BYTES);
      var name = text.getString(0);
      call("nvmlDeviceGetUUID", TEXT_OF, gpu, text, TEXT_BYTES);
      var uuid = text.getString(0);
      var memory = scratch.allocate(MEMORY);
      tell("nvmlDeviceGetMemoryInfo", ONE_OF, gpu, memory);
      var capability = scratch.allocate(JAVA_INT, 2);
      call(
          "nvmlDeviceGetCudaComputeCapability",
          TWO_OF,
          gpu,
          capability,
          capability.asSlice(JAVA_INT.byteSize()));
      return Optional.of(
          new GpuFacts(
              index,
              name,
              uuid,
              memory.getAtIndex(JAVA_LONG, 0),
              memory.getAtIndex(JAVA_LONG, 1),
              capability.getAtIndex(JAVA_INT, 0),
              capability.getAtIndex(JAVA_INT, 1),
              linksUp(gpu, scratch)));
    }
  }

  /// How GPU `from` gets at the memory of GPU `to`.
  public PeerPath path(int from, int to) throws NvmlFailed {
    try (var scratch = Arena.ofConfined()) {
      var a = handle(from, scratch);
      var b = handle(to, scratch);
      return peers(a, b, PEER_NVLINK, scratch)
          ? PeerPath.NVLINK
          : peers(a, b, PEER_READ, scratch) ? PeerPath.PCIE : PeerPath.NONE;
    }
  }

  private boolean peers(MemorySegment a, MemorySegment b, int how, Arena scratch)
      throws NvmlFailed {
    var status = scratch.allocate(JAVA_INT);
    return tell("nvmlDeviceGetP2PStatus", PEERS_OF, a, b, how, status)
        && status.get(JAVA_INT, 0) == PEER_OK;
  }

  /// Which links a GPU has is found out by asking: one that it has not is an error.
  private int linksUp(MemorySegment gpu, Arena scratch) throws NvmlFailed {
    var up = scratch.allocate(JAVA_INT);
    int links = 0;
    for (int link = 0; link < MOST_LINKS; link++) {
      if (result("nvmlDeviceGetNvLinkState", LINK_OF, gpu, link, up) != SUCCESS) {
        break;
      }
      links += up.get(JAVA_INT, 0) == 0 ? 0 : 1;
    }
    return links;
  }

  private MemorySegment handle(int index, Arena scratch) throws NvmlFailed {
    var handle = scratch.allocate(ADDRESS);
    call(HANDLE, HANDLE_OF, index, handle);
    return handle.get(ADDRESS, 0);
  }

  private int number(String function) throws NvmlFailed {
    try (var scratch = Arena.ofConfined()) {
      var number = scratch.allocate(JAVA_INT);
      call(function, ONE_OUT, number);
      return number.get(JAVA_INT, 0);
    }
  }

  /// False where this GPU has no such thing.
  private boolean tell(String function, FunctionDescriptor shape, Object... arguments)
      throws NvmlFailed {
    int code = result(function, shape, arguments);
    if (code != SUCCESS && code != NOT_SUPPORTED) {
      throw failed(function, code);
    }
    return code == SUCCESS;
  }

  private void call(String function, FunctionDescriptor shape, Object... arguments)
      throws NvmlFailed {
    int code = result(function, shape, arguments);
    if (code != SUCCESS) {
      throw failed(function, code);
    }
  }

  private int result(String function, FunctionDescriptor shape, Object... arguments)
      throws NvmlFailed {
    return (int) invoke(function, shape, arguments);
  }

  private Object invoke(String function, FunctionDescriptor shape, Object... arguments)
      throws NvmlFailed {
    var symbol = library.find(function);
    if (symbol.isEmpty()) {
      throw new NvmlFailed(
          "the NVIDIA driver's library has no %s; update the driver".formatted(function));
    }
    try {
      return Linker.nativeLinker()
          .downcallHandle(symbol.get(), shape)
          .invokeWithArguments(arguments);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("a native call threw", e);
    }
  }

  private NvmlFailed failed(String function, int code) throws NvmlFailed {
    var words = (MemorySegment) invoke("nvmlErrorString", WORDS_OF, code);
    return new NvmlFailed(
        "the NVIDIA driver does not answer: %s said %s (%d); see nvidia-smi"
            .formatted(function, words.reinterpret(TEXT_BYTES).getString(0), code));
  }

  @Override
  public void close() {
    try {
      int _ = result("nvmlShutdown", NOTHING_GIVEN);
    } catch (NvmlFailed e) {
      throw new IllegalStateException(e.line(), e); // what could be started can be ended
    } finally {
      arena.close();
    }
  }
}
