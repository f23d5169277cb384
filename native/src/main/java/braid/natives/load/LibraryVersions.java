package braid.natives.load;

import braid.natives.load.Libraries.Library;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/// Version that a loaded library reports. Empty if it has no such function or the call fails;
/// callers then use the version of the file name.
final class LibraryVersions {
  private static final FunctionDescriptor INTO_ONE =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS);
  private static final FunctionDescriptor INTO_TWO =
      FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS);
  private static final FunctionDescriptor INTO_THREE =
      FunctionDescriptor.ofVoid(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS);
  private static final FunctionDescriptor RETURNED = FunctionDescriptor.of(ValueLayout.JAVA_LONG);

  private static final int MOST_TEXT_BYTES = 64;

  private LibraryVersions() {}

  static Optional<String> version(Library requested, DynamicLibrary library) {
    return switch (requested) {
      case NCCL -> one(library, "ncclGetVersion").map(Feature::tenThousands);
      case CUDA_RUNTIME -> one(library, "cudaRuntimeGetVersion").map(Feature::cuda);
      case CUPTI -> one(library, "cuptiGetVersion").map(Feature::tenThousands);
      case NVRTC -> nvrtc(library);
      case CUBLAS_LT -> returned(library, "cublasLtGetVersion");
      case CUDNN -> returned(library, "cudnnGetVersion");
      case NVSHMEM -> nvshmem(library);
      case CUBLAS_MP -> cublasMp(library);
      case UCX -> text(library, "ucp_get_version_string");
      case CUDA_DRIVER, NVML, NVTX, NVTX_2 -> Optional.empty();
    };
  }

  /// Early versions want a handle before the version's address, and have no such function.
  private static Optional<String> cublasMp(DynamicLibrary library) {
    return library
        .function("cublasMpBufferRegister", INTO_ONE)
        .flatMap(_ -> one(library, "cublasMpGetVersion"))
        .map(Feature::thousands);
  }

  private static Optional<Integer> one(DynamicLibrary library, String function) {
    var call = library.function(function, INTO_ONE);
    if (call.isEmpty()) {
      return Optional.empty();
    }
    try (var arena = Arena.ofConfined()) {
      var version = arena.allocate(ValueLayout.JAVA_INT);
      var failed = (int) call.get().invokeExact(version);
      return failed != 0 ? Optional.empty() : Optional.of(version.get(ValueLayout.JAVA_INT, 0));
    } catch (Throwable e) {
      throw DynamicLibrary.unexpected(e);
    }
  }

  private static Optional<String> nvrtc(DynamicLibrary library) {
    var call = library.function("nvrtcVersion", INTO_TWO);
    if (call.isEmpty()) {
      return Optional.empty();
    }
    try (var arena = Arena.ofConfined()) {
      var two = arena.allocate(ValueLayout.JAVA_INT, 2);
      var failed = (int) call.get().invokeExact(two, two.asSlice(Integer.BYTES));
      return failed != 0 ? Optional.empty() : Optional.of(dotted(two, 2));
    } catch (Throwable e) {
      throw DynamicLibrary.unexpected(e);
    }
  }

  private static Optional<String> returned(DynamicLibrary library, String function) {
    var call = library.function(function, RETURNED);
    if (call.isEmpty()) {
      return Optional.empty();
    }
    try {
      return Optional.of(Feature.tenThousands((int) (long) call.get().invokeExact()));
    } catch (Throwable e) {
      throw DynamicLibrary.unexpected(e);
    }
  }

  @SuppressWarnings("restricted") // a constant text of the library
  private static Optional<String> text(DynamicLibrary library, String function) {
    var call = library.function(function, FunctionDescriptor.of(ValueLayout.ADDRESS));
    if (call.isEmpty()) {
      return Optional.empty();
    }
    try {
      var text = (MemorySegment) call.get().invokeExact();
      return Optional.of(text.reinterpret(MOST_TEXT_BYTES).getString(0));
    } catch (Throwable e) {
      throw DynamicLibrary.unexpected(e);
    }
  }

  private static Optional<String> nvshmem(DynamicLibrary library) {
    var call = library.function("nvshmemx_vendor_get_version_info", INTO_THREE);
    if (call.isEmpty()) {
      return Optional.empty();
    }
    try (var arena = Arena.ofConfined()) {
      var three = arena.allocate(ValueLayout.JAVA_INT, 3);
      call.get()
          .invokeExact(three, three.asSlice(Integer.BYTES), three.asSlice(2L * Integer.BYTES));
      return Optional.of(dotted(three, 3));
    } catch (Throwable e) {
      throw DynamicLibrary.unexpected(e);
    }
  }

  private static String dotted(MemorySegment numbers, int count) {
    var text = new StringBuilder();
    for (int i = 0; i < count; i++) {
      text.append(i == 0 ? "" : ".").append(numbers.getAtIndex(ValueLayout.JAVA_INT, i));
    }
    return text.toString();
  }
}
