package braid.natives.cublasmp;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.GpuError;
import braid.natives.load.BraidNativeMissing;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Functions of cuBLASMp 0.8 that are used here. Handles and addresses of device memory are plain
/// numbers, because Java never reads through them.
final class CublasMpCalls {
  private static final int SUCCESS = 0;

  private static @Nullable CublasMpCalls loaded;

  final MethodHandle create;
  final MethodHandle destroy;
  final MethodHandle setStream;
  final MethodHandle createGrid;
  final MethodHandle destroyGrid;
  final MethodHandle register;
  final MethodHandle deregister;
  final MethodHandle createMatrix;
  final MethodHandle destroyMatrix;
  final MethodHandle createMatmul;
  final MethodHandle destroyMatmul;
  final MethodHandle setAttribute;
  final MethodHandle workspaceSizes;
  final MethodHandle matmul;

  private CublasMpCalls(ForeignLibrary library) {
    var ofHandle = FunctionDescriptor.of(JAVA_INT, JAVA_LONG);
    var ofProduct =
        FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG)
            .appendArgumentLayouts(JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS)
            .appendArgumentLayouts(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG)
            .appendArgumentLayouts(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG)
            .appendArgumentLayouts(ADDRESS)
            .appendArgumentLayouts(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG)
            .appendArgumentLayouts(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    create =
        library.function("cublasMpCreate", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG));
    destroy = library.function("cublasMpDestroy", ofHandle);
    setStream =
        library.function(
            "cublasMpSetStream", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    createGrid =
        library.function(
            "cublasMpGridCreate",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, ADDRESS));
    destroyGrid = library.function("cublasMpGridDestroy", ofHandle);
    register =
        library.function(
            "cublasMpBufferRegister",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    deregister =
        library.function(
            "cublasMpBufferDeregister", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    createMatrix =
        library.function(
            "cublasMpMatrixDescriptorCreate",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG)
                .appendArgumentLayouts(JAVA_LONG, JAVA_LONG, JAVA_LONG)
                .appendArgumentLayouts(JAVA_INT, JAVA_LONG, ADDRESS));
    destroyMatrix = library.function("cublasMpMatrixDescriptorDestroy", ofHandle);
    createMatmul =
        library.function(
            "cublasMpMatmulDescriptorCreate", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    destroyMatmul = library.function("cublasMpMatmulDescriptorDestroy", ofHandle);
    setAttribute =
        library.function(
            "cublasMpMatmulDescriptorSetAttribute",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
    workspaceSizes =
        library.function(
            "cublasMpMatmul_bufferSize", ofProduct.appendArgumentLayouts(ADDRESS, ADDRESS));
    matmul =
        library.function(
            "cublasMpMatmul",
            ofProduct.appendArgumentLayouts(JAVA_LONG, JAVA_LONG, ADDRESS, JAVA_LONG));
  }

  /// Loads the library, after the libraries that it depends on.
  ///
  /// @throws BraidNativeMissing if it or one of these is missing, or it is too old
  /// @throws UnsatisfiedLinkError if it lacks a function
  static synchronized CublasMpCalls load() {
    var calls = loaded;
    if (calls == null) {
      Libraries.require(Library.NCCL);
      Libraries.require(Library.CUBLAS_LT);
      calls = of(ForeignLibrary.at(Libraries.require(Library.CUBLAS_MP).path()));
      loaded = calls;
    }
    return calls;
  }

  /// Returns the functions of a loaded library, after a check of its version.
  static CublasMpCalls of(ForeignLibrary library) {
    // Early versions want a handle before the version's address.
    if (!library.has("cublasMpBufferRegister")) {
      throw new BraidNativeMissing(
          "%s must be %s or later but has no cublasMpBufferRegister; %s"
              .formatted(
                  Library.CUBLAS_MP.title(),
                  Feature.FUSED_COLLECTIVES.minimum(),
                  Library.CUBLAS_MP.remedy()));
    }
    var found = Feature.thousands(version(library));
    if (!Feature.FUSED_COLLECTIVES.isIn(found)) {
      throw new BraidNativeMissing(
          "%s must be %s or later but was %s; %s"
              .formatted(
                  Library.CUBLAS_MP.title(),
                  Feature.FUSED_COLLECTIVES.minimum(),
                  found,
                  Library.CUBLAS_MP.remedy()));
    }
    return new CublasMpCalls(library);
  }

  private static int version(ForeignLibrary library) {
    var function = library.function("cublasMpGetVersion", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    try (var arena = Arena.ofConfined()) {
      var version = arena.allocate(JAVA_INT);
      call("cublasMpGetVersion", "", () -> (int) function.invokeExact(version));
      return version.get(JAVA_INT, 0);
    }
  }

  /// A call that returns a status.
  interface Call {
    int run() throws Throwable;
  }

  static void call(String name, String place, Call call) {
    call(name, place, "set CUBLASMP_LOG_LEVEL=1 to see why", call);
  }

  /// Makes a call.
  ///
  /// @throws GpuError with this remedy if the status is a failure
  static void call(String name, String place, String remedy, Call call) {
    int status;
    try {
      status = call.run();
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
    if (status != SUCCESS) {
      throw new GpuError(name, status, name(status), "status " + status, place, remedy);
    }
  }

  private static String name(int status) {
    return switch (status) {
      case 1 -> "CUBLASMP_STATUS_NOT_INITIALIZED";
      case 2 -> "CUBLASMP_STATUS_ALLOCATION_FAILED";
      case 3 -> "CUBLASMP_STATUS_INVALID_VALUE";
      case 4 -> "CUBLASMP_STATUS_ARCHITECTURE_MISMATCH";
      case 5 -> "CUBLASMP_STATUS_EXECUTION_FAILED";
      case 6 -> "CUBLASMP_STATUS_INTERNAL_ERROR";
      case 7 -> "CUBLASMP_STATUS_NOT_SUPPORTED";
      default -> "an unknown status";
    };
  }
}
