package braid.natives.cuda;

import org.bytedeco.cuda.cudart.CUfunc_st;
import org.bytedeco.cuda.cudart.CUmod_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;

/// Compiled kernels, loaded on one device.
public final class GpuModule implements AutoCloseable {
  private final Gpu gpu;
  private final CUmod_st module;
  private boolean closed;

  private GpuModule(Gpu gpu, CUmod_st module) {
    this.gpu = gpu;
    this.module = module;
  }

  static GpuModule load(Gpu gpu, byte[] image) {
    gpu.use();
    var module = new CUmod_st();
    try (var copy = new BytePointer(image.length + 1L)) {
      copy.put(image, 0, image.length);
      copy.put(image.length, (byte) 0); // PTX is zero-terminated text
      gpu.check("cuModuleLoadData", cudart.cuModuleLoadData(module, copy));
    }
    return new GpuModule(gpu, module);
  }

  /// Returns the kernel of this name, loaded now. The driver would otherwise load it at its first
  /// launch, which waits for all work on the device; that work may itself wait for this launch.
  public GpuKernel kernel(String name) {
    gpu.use();
    var function = new CUfunc_st();
    gpu.check("cuModuleGetFunction of " + name, cudart.cuModuleGetFunction(function, module, name));
    gpu.check("cuFuncLoad of " + name, cudart.cuFuncLoad(function));
    return GpuKernel.of(gpu, name, function);
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      gpu.release("cuModuleUnload", () -> cudart.cuModuleUnload(module));
    }
  }
}
