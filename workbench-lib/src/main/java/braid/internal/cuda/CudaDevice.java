package braid.internal.cuda;

import braid.BraidException;
import braid.internal.rank.Env;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.Gpu;
import braid.natives.kernels.Kernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// This rank's GPU with what is loaded on it: our kernels and cublasLt.
public final class CudaDevice implements AutoCloseable {
  private final Gpu gpu;
  private final Kernels kernels;
  private final Lt lt;
  private final Path algorithms;
  private @Nullable Multiplier multiplier;

  private CudaDevice(Gpu gpu, Kernels kernels, Lt lt, Path algorithms) {
    this.gpu = gpu;
    this.kernels = kernels;
    this.lt = lt;
    this.algorithms = algorithms;
  }

  /// Opens the device that is this rank's among the ranks of its machine. Kernels are compiled once
  /// for each kind of device, algorithms are measured once.
  public static CudaDevice open(Env env) {
    int device = env.local().rank();
    int rank = env.world().rank();
    var missing = Gpu.missing();
    if (missing.isPresent()) {
      throw new BraidException(
          "the backend is cuda but no GPU can be used: %s; use host or auto"
              .formatted(missing.get()));
    }
    if (device >= Gpu.count()) {
      throw new BraidException(
          "rank %d needs GPU %d but this machine shows %d; start fewer ranks, or look at CUDA_VISIBLE_DEVICES"
              .formatted(rank, device, Gpu.count()));
    }
    var gpu = Gpu.open(device, "rank " + rank);
    try {
      return new CudaDevice(gpu, Kernels.load(gpu, env.kernels()), Lt.open(gpu), env.algorithms());
    } catch (RuntimeException | Error e) {
      gpu.close();
      throw e;
    }
  }

  public Gpu gpu() {
    return gpu;
  }

  public Kernels kernels() {
    return kernels;
  }

  /// What multiplies, whose choices of algorithms all streams share.
  public synchronized Multiplier multiplier() {
    var existing = multiplier;
    if (existing == null) {
      existing = new Multiplier(this, lt, algorithms);
      multiplier = existing;
    }
    return existing;
  }

  /// How many algorithms were chosen so far, and how, for people.
  public synchronized SequencedMap<String, Long> choices() {
    var choices = new LinkedHashMap<String, Long>();
    if (multiplier != null) {
      choices.put("GEMM algorithms measured", multiplier.choices(false));
      choices.put("GEMM algorithms from disk", multiplier.choices(true));
    }
    return choices;
  }

  /// That memory of the device as views can be taken of it, as long as the arena lives. The host
  /// cannot read it.
  @SuppressWarnings("restricted") // An address is all it is: only the device goes there.
  public static MemorySegment view(long address, long bytes, Arena arena) {
    return MemorySegment.ofAddress(address).reinterpret(bytes, arena, null);
  }

  @Override
  public void close() {
    gpu.use();
    if (multiplier != null) {
      multiplier.close();
    }
    lt.close();
    kernels.close();
    gpu.close();
  }
}
