package braid.natives.kernels;

import braid.natives.cuda.GpuError;
import braid.natives.load.Feature;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// NVRTC, called through FFM. JavaCPP's binding is not used: it loads the driver's library, but
/// kernels must also compile on machines without a driver.
@SuppressWarnings("restricted")
final class KernelCompiler {
  private static final MemoryLayout POINTER = ValueLayout.ADDRESS;
  private static final MemoryLayout INT = ValueLayout.JAVA_INT;

  /// Upper bound of the length of NVRTC's error texts.
  private static final long ERROR_TEXT_BYTES = 256;

  /// First architecture that has a variant with the suffix `a`, which enables instructions of this
  /// architecture only.
  private static final int FIRST_WITH_SUFFIX = 90;

  private final SymbolLookup symbols;
  private final String version;

  private KernelCompiler(SymbolLookup symbols) {
    this.symbols = symbols;
    try (var arena = Arena.ofConfined()) {
      var major = arena.allocate(ValueLayout.JAVA_INT);
      var minor = arena.allocate(ValueLayout.JAVA_INT);
      check(
          "nvrtcVersion",
          (int) call("nvrtcVersion", List.of(POINTER, POINTER), major, minor),
          "",
          "");
      version = major.get(ValueLayout.JAVA_INT, 0) + "." + minor.get(ValueLayout.JAVA_INT, 0);
    }
  }

  /// Loads NVRTC from this file.
  static KernelCompiler open(Path library) {
    try {
      var real = library.toRealPath();
      // NVRTC opens these libraries by name, and finds them that way only if they are loaded.
      try (var beside =
          Files.newDirectoryStream(real.resolveSibling(""), "libnvrtc-builtins.so.*")) {
        beside.forEach(builtins -> SymbolLookup.libraryLookup(builtins, Arena.global()));
      }
      return new KernelCompiler(SymbolLookup.libraryLookup(real, Arena.global()));
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read the folder of " + library, e);
    }
  }

  /// Returns NVRTC's version, such as `13.1`.
  String version() {
    return version;
  }

  /// Returns the name of an architecture: `sm_90a` for 90.
  static String architecture(int number) {
    Feature.KERNELS.require(Feature.capability(number));
    return "sm_" + number + (number >= FIRST_WITH_SUFFIX ? "a" : "");
  }

  /// Returns the compiler's options. Fused multiply-add is off, so that results equal the host's.
  /// Line information is kept for profilers.
  static List<String> options(String architecture) {
    return List.of(
        "--gpu-architecture=" + architecture, "-std=c++17", "--fmad=false", "--generate-line-info");
  }

  /// Compiles the sources to machine code (cubin).
  ///
  /// @throws GpuError if compilation fails, with NVRTC's log
  byte[] compile(KernelSources sources, String architecture) {
    try (var arena = Arena.ofConfined()) {
      var holder = arena.allocate(ValueLayout.ADDRESS);
      check(
          "nvrtcCreateProgram",
          (int)
              call(
                  "nvrtcCreateProgram",
                  List.of(POINTER, POINTER, POINTER, INT, POINTER, POINTER),
                  holder,
                  arena.allocateFrom(sources.program()),
                  arena.allocateFrom(sources.name()),
                  sources.included().size(),
                  texts(arena, List.copyOf(sources.included().values())),
                  texts(arena, List.copyOf(sources.included().keySet()))),
          "",
          architecture);
      try {
        return compile(arena, holder.get(ValueLayout.ADDRESS, 0), architecture);
      } finally {
        check(
            "nvrtcDestroyProgram",
            (int) call("nvrtcDestroyProgram", List.of(POINTER), holder),
            "",
            architecture);
      }
    }
  }

  private byte[] compile(Arena arena, MemorySegment program, String architecture) {
    var options = options(architecture);
    int code =
        (int)
            call(
                "nvrtcCompileProgram",
                List.of(POINTER, INT, POINTER),
                program,
                options.size(),
                texts(arena, options));
    if (code != 0) {
      var log = bytes(arena, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog", architecture);
      check("nvrtcCompileProgram", code, log.getString(0).strip(), architecture);
    }
    return bytes(arena, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN", architecture)
        .toArray(ValueLayout.JAVA_BYTE);
  }

  /// Returns the output of a program: `sizeCall` returns its size, `dataCall` copies it.
  private MemorySegment bytes(
      Arena arena, MemorySegment program, String sizeCall, String dataCall, String architecture) {
    var size = arena.allocate(ValueLayout.JAVA_LONG);
    check(
        sizeCall, (int) call(sizeCall, List.of(POINTER, POINTER), program, size), "", architecture);
    var bytes = arena.allocate(size.get(ValueLayout.JAVA_LONG, 0));
    check(
        dataCall,
        (int) call(dataCall, List.of(POINTER, POINTER), program, bytes),
        "",
        architecture);
    return bytes;
  }

  private static MemorySegment texts(Arena arena, List<String> texts) {
    var pointers = arena.allocate(ValueLayout.ADDRESS, texts.size());
    for (int i = 0; i < texts.size(); i++) {
      pointers.setAtIndex(ValueLayout.ADDRESS, i, arena.allocateFrom(texts.get(i)));
    }
    return pointers;
  }

  private void check(String call, int code, String log, String architecture) {
    if (code == 0) {
      return;
    }
    var text = (MemorySegment) call("nvrtcGetErrorString", ValueLayout.ADDRESS, List.of(INT), code);
    var name = text.reinterpret(ERROR_TEXT_BYTES).getString(0);
    throw new GpuError(
        call,
        code,
        name,
        log.isEmpty() ? "no log" : log,
        "NVRTC " + version + (architecture.isEmpty() ? "" : " for " + architecture),
        "");
  }

  private Object call(String name, List<MemoryLayout> parameters, Object... arguments) {
    return call(name, ValueLayout.JAVA_INT, parameters, arguments);
  }

  private Object call(
      String name, MemoryLayout result, List<MemoryLayout> parameters, Object... arguments) {
    MethodHandle function =
        Linker.nativeLinker()
            .downcallHandle(
                symbols
                    .find(name)
                    .orElseThrow(() -> new UnsatisfiedLinkError("NVRTC has no " + name)),
                FunctionDescriptor.of(result, parameters.toArray(MemoryLayout[]::new)));
    try {
      return function.invokeWithArguments(arguments);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException(name + " threw", e);
    }
  }
}
