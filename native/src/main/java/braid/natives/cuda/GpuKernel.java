package braid.natives.cuda;

import java.util.ArrayList;
import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;

/// A kernel and the sizes of its parameters. A launch with too few arguments would otherwise read
/// invalid memory.
public final class GpuKernel {
  private static final PointerPointer<?> NO_EXTRA = new PointerPointer<>();

  private final Gpu gpu;
  private final String name;
  private final CUfunc_st function;
  private final long[] parameterBytes;

  private GpuKernel(Gpu gpu, String name, CUfunc_st function, long[] parameterBytes) {
    this.gpu = gpu;
    this.name = name;
    this.function = function;
    this.parameterBytes = parameterBytes;
  }

  static GpuKernel of(Gpu gpu, String name, CUfunc_st function) {
    var sizes = new ArrayList<Long>();
    try (var offset = new SizeTPointer(1);
        var size = new SizeTPointer(1)) {
      int code = cudart.cuFuncGetParamInfo(function, 0, offset, size);
      while (code == cudart.CUDA_SUCCESS) {
        sizes.add(size.get());
        code = cudart.cuFuncGetParamInfo(function, sizes.size(), offset, size);
      }
      if (code != cudart.CUDA_ERROR_INVALID_VALUE) { // returned after the last parameter
        gpu.check("cuFuncGetParamInfo of " + name, code);
      }
    }
    return new GpuKernel(gpu, name, function, sizes.stream().mapToLong(Long::longValue).toArray());
  }

  public String name() {
    return name;
  }

  long[] parameterBytes() {
    return parameterBytes;
  }

  /// Number of threads of the largest block that its registers and launch bounds allow.
  public int mostThreads() {
    gpu.use();
    var value = new int[1];
    gpu.check(
        "cuFuncGetAttribute of " + name,
        cudart.cuFuncGetAttribute(value, cudart.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    return value[0];
  }

  /// Allows launches with this much dynamic shared memory. Required above 48 KiB.
  public void maxDynamicSharedBytes(int bytes) {
    gpu.use();
    gpu.check(
        "cuFuncSetAttribute of " + name,
        cudart.cuFuncSetAttribute(
            function, cudart.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
  }

  /// Launches `blocks` × `threads`. Each argument is a Long (also for an address), an Integer, a
  /// Float, or a MemorySegment whose bytes are passed by value.
  public void launch(
      GpuStream stream, int blocks, int threads, int sharedBytes, Object... arguments) {
    gpu.use();
    int code =
        cudart.cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            threads,
            1,
            1,
            sharedBytes,
            stream.pointer(),
            stream.arguments().of(this, arguments),
            NO_EXTRA);
    if (code != cudart.CUDA_SUCCESS) {
      throw Driver.error(
          "cuLaunchKernel of %s with %d blocks of %d threads and %d bytes of shared memory"
              .formatted(name, blocks, threads, sharedBytes),
          code,
          gpu.where(),
          Remedies.of(code));
    }
  }
}
