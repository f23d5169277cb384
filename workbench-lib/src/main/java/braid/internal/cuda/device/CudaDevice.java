package braid.internal.cuda.device;

import braid.internal.rank.Closing;
import braid.internal.rank.Env;
import braid.model.BraidException;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.Gpu;
import braid.natives.kernels.Kernels;
import braid.natives.load.BraidNativeMissing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
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
    refusal(Gpu.missing(), Gpu.count(), device, rank)
        .ifPresent(
            why -> {
              throw new BraidException(why);
            });
    var gpu = Gpu.open(device, "rank " + rank);
    try {
      return new CudaDevice(gpu, Kernels.load(gpu, env.kernels()), Lt.open(gpu), env.algorithms());
    } catch (BraidNativeMissing e) {
      var why = new BraidException(onCuda(String.valueOf(e.getMessage())), e);
      Closing.after(why, gpu);
      throw why;
    } catch (RuntimeException | Error e) {
      Closing.after(e, gpu);
      throw e;
    }
  }

  /// Why that rank can have no such GPU. Who chose the backend asked NVML, which also lists GPUs
  /// that CUDA cannot use.
  ///
  /// @param missing why CUDA can use none
  /// @param usable how many it can use
  static Optional<String> refusal(Optional<String> missing, int usable, int device, int rank) {
    return missing
        .map(CudaDevice::onCuda)
        .or(
            () ->
                device < usable
                    ? Optional.empty()
                    : Optional.of(
                        "rank %d needs GPU %d but CUDA can use %d here; start fewer ranks, look at CUDA_VISIBLE_DEVICES, or run on the host: --backend host"
                            .formatted(rank, device, usable)));
  }

  private static String onCuda(String missing) {
    return "the backend is cuda but %s; or run on the host: --backend host".formatted(missing);
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
    var parts = new ArrayDeque<AutoCloseable>(List.of(lt, kernels, gpu));
    if (multiplier != null) {
      parts.addFirst(multiplier);
    }
    Closing.all(parts::poll);
  }
}
