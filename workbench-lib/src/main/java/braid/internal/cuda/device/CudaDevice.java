package braid.internal.cuda.device;

import braid.internal.rank.AttentionEngine;
import braid.internal.rank.Closing;
import braid.internal.rank.Env;
import braid.model.BraidException;
import braid.natives.LibC;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.Gpu;
import braid.natives.kernels.AttentionKernels;
import braid.natives.kernels.Kernels;
import braid.natives.load.BraidNativeMissing;
import braid.natives.nccl.Nccl;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// This rank's GPU with our kernels and cublasLt.
public final class CudaDevice implements AutoCloseable {
  /// Most hardware queues that CUDA gives a process; 8 by default.
  private static final String MOST_QUEUES = "32";

  private final Gpu gpu;
  private final Kernels kernels;
  private final Lt lt;
  private final Path cacheFolder;
  private final Path algorithms;
  private final AttentionEngine engine;
  private final int ranks;
  private @Nullable Multiplier multiplier;
  private @Nullable Attender attender;

  private CudaDevice(Gpu gpu, Kernels kernels, Lt lt, Env env) {
    this.gpu = gpu;
    this.kernels = kernels;
    this.lt = lt;
    this.cacheFolder = env.kernels();
    this.algorithms = env.algorithms();
    this.engine = env.attention();
    this.ranks = env.ranksPerGpu(Gpu.count());
  }

  /// Opens this rank's GPU. Kernels are compiled, and algorithms measured, once per kind of GPU.
  public static CudaDevice open(Env env) {
    if (env.world().size() > env.local().size()) {
      // Every channel between hosts has a stream that may wait.
      LibC.setVariable("CUDA_DEVICE_MAX_CONNECTIONS", MOST_QUEUES, false);
    }
    int device = Gpu.missing().isEmpty() ? env.gpu(Gpu.count()) : env.local().rank();
    int rank = env.world().rank();
    refusal(Gpu.missing(), Gpu.count(), device, rank)
        .ifPresent(
            reason -> {
              throw new BraidException(reason);
            });
    int count = Gpu.count();
    if (env.ranksPerGpu(count) > 1) {
      // Ranks on one GPU get different hosts, and ranks on one host have different GPUs.
      Nccl.poseAsHost("braid-%s-%d".formatted(env.host().orElse(""), env.local().rank() / count));
    }
    var gpu = Gpu.open(device, "rank " + rank);
    try {
      return new CudaDevice(
          gpu, Kernels.load(gpu, env.kernels(), env.ranksPerGpu(count)), Lt.open(gpu), env);
    } catch (BraidNativeMissing e) {
      var cause = new BraidException(onCuda(String.valueOf(e.getMessage())), e);
      Closing.after(cause, gpu);
      throw cause;
    } catch (RuntimeException | Error e) {
      Closing.after(e, gpu);
      throw e;
    }
  }

  /// Reason why the rank cannot use the GPU; empty if it can. The launcher chose the backend by
  /// NVML, which also lists GPUs that CUDA cannot use.
  ///
  /// @param missing reason why CUDA can use no GPU
  /// @param usable number of GPUs that CUDA can use
  static Optional<String> refusal(Optional<String> missing, int usable, int device, int rank) {
    return missing
        .map(CudaDevice::onCuda)
        .or(
            () ->
                device < usable
                    ? Optional.empty()
                    : Optional.of(
                        "rank %d needs GPU %d but CUDA can use %d here; start fewer ranks, let them share GPUs (--share-gpus), look at CUDA_VISIBLE_DEVICES, or run on the host: --backend host"
                            .formatted(rank, device, usable)));
  }

  private static String onCuda(String missing) {
    return "the backend is cuda but %s; or run on the host: --backend host".formatted(missing);
  }

  /// Returns the largest number of ranks on a GPU of this machine.
  public int ranks() {
    return ranks;
  }

  public Gpu gpu() {
    return gpu;
  }

  public Kernels kernels() {
    return kernels;
  }

  /// Returns the attender. The first call loads its kernels, and cuDNN unless it is not wanted; on
  /// a kind of GPU without compiled kernels it compiles them, which takes several seconds.
  public synchronized Attender attender() {
    var existing = attender;
    if (existing == null) {
      existing = new Attender(gpu, AttentionKernels.load(gpu, cacheFolder), engine);
      attender = existing;
    }
    return existing;
  }

  /// Returns the multiplier, whose choices of algorithms all streams share.
  public synchronized Multiplier multiplier() {
    var existing = multiplier;
    if (existing == null) {
      existing = new Multiplier(this, lt, algorithms);
      multiplier = existing;
    }
    return existing;
  }

  /// Numbers of algorithms chosen so far, by origin, for readings.
  public synchronized SequencedMap<String, Long> choices() {
    var choices = new LinkedHashMap<String, Long>();
    if (multiplier != null) {
      choices.put("GEMM algorithms measured", multiplier.choices(false));
      choices.put("GEMM algorithms from disk", multiplier.choices(true));
    }
    return choices;
  }

  /// Returns memory of the device as a segment, valid as long as the arena. The host cannot read
  /// it.
  @SuppressWarnings("restricted") // Only an address: only the device accesses it.
  public static MemorySegment view(long address, long bytes, Arena arena) {
    return MemorySegment.ofAddress(address).reinterpret(bytes, arena, null);
  }

  @Override
  public void close() {
    var parts = new ArrayDeque<AutoCloseable>(List.of(lt, kernels, gpu));
    if (multiplier != null) {
      parts.addFirst(multiplier);
    }
    if (attender != null) {
      parts.addFirst(attender);
    }
    Closing.all(parts::poll);
  }
}
