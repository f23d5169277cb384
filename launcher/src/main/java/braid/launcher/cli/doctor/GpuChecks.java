package braid.launcher.cli.doctor;

import braid.internal.cuda.memory.CudaMemory;
import braid.launcher.machine.Gpus;
import braid.model.MemoryKind;
import braid.natives.cuda.GpuError;
import braid.natives.load.Libraries;
import braid.natives.nvml.GpuFacts;
import braid.natives.nvml.Nvml;
import braid.natives.nvml.PeerPath;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/// Checks of GPUs, the paths between them, and what depends on them: kinds of symmetric memory, and
/// multicast.
final class GpuChecks {
  private static final String NO_GPU = "needs a GPU";

  private GpuChecks() {}

  static List<Check> all(Gpus gpus) {
    var checks = new ArrayList<Check>();
    checks.add(gpus(gpus));
    checks.add(driver(gpus));
    var paths = Paths.of(gpus);
    checks.add(links(gpus, paths));
    var cuda = gpus.count() == 0 ? Cuda.absent(NO_GPU) : Cuda.here();
    checks.add(cuda(gpus, cuda));
    checks.addAll(memory(gpus, cuda, paths));
    checks.add(
        Check.ok(
            "multicast",
            "multicast",
            "software fan-out: one copy per receiver; hardware multicast is not used"));
    return checks;
  }

  private static Check gpus(Gpus gpus) {
    if (gpus.count() == 0) {
      return Check.absent(
          "gpus", "GPUs", gpus.words() + ", so no CUDA, and no symmetric memory but native");
    }
    var alike =
        gpus.all().stream()
            .collect(
                Collectors.groupingBy(GpuChecks::words, LinkedHashMap::new, Collectors.counting()));
    return Check.ok(
        "gpus",
        "GPUs",
        alike.entrySet().stream()
            .map(e -> e.getValue() + " x " + e.getKey())
            .collect(Collectors.joining(", ")));
  }

  private static String words(GpuFacts gpu) {
    var memory =
        gpu.totalBytes() == 0
            ? "memory shared with the host"
            : MachineChecks.mib(gpu.totalBytes() >> 20);
    return "%s (%s, compute capability %d.%d)"
        .formatted(gpu.name(), memory, gpu.major(), gpu.minor());
  }

  private static Check driver(Gpus gpus) {
    return gpus.driver().isEmpty()
        ? Check.absent("gpu_driver", "GPU driver", "unknown: " + gpus.missing())
        : Check.ok("gpu_driver", "GPU driver", gpus.driver());
  }

  /// Paths between each pair of GPUs.
  ///
  /// @param unknown why the driver does not report them; empty if it does
  private record Paths(Map<PeerPath, List<String>> pairs, String unknown) {
    static Paths of(Gpus gpus) {
      var pairs = new EnumMap<PeerPath, List<String>>(PeerPath.class);
      if (gpus.count() < 2) {
        return new Paths(pairs, "");
      }
      try (var nvml = Nvml.open()) {
        var inventory = nvml.inventory();
        for (int from = 0; from < gpus.count(); from++) {
          for (int to = from + 1; to < gpus.count(); to++) {
            var path = inventory.path(gpus.all().get(from).index(), gpus.all().get(to).index());
            pairs.computeIfAbsent(path, _ -> new ArrayList<>()).add(from + "-" + to);
          }
        }
        return new Paths(pairs, "");
      } catch (GpuError e) {
        return new Paths(pairs, String.valueOf(e.getMessage()));
      }
    }
  }

  private static Check links(Gpus gpus, Paths paths) {
    var id = "gpu_links";
    var title = "GPU links";
    if (gpus.count() < 2) {
      return Check.absent(id, title, gpus.count() == 1 ? "only one GPU" : gpus.words());
    }
    if (!paths.unknown.isEmpty()) {
      return Check.absent(id, title, "unknown: " + paths.unknown);
    }
    var value = words(gpus, paths.pairs);
    return paths.pairs.containsKey(PeerPath.NONE)
        ? Check.absent(
            id, title, value, "run ranks on GPUs that reach each other: CUDA_VISIBLE_DEVICES")
        : Check.ok(id, title, value);
  }

  /// Describes paths: "NVLink between all pairs, 18 links up on each GPU".
  static String words(Gpus gpus, Map<PeerPath, List<String>> paths) {
    var between =
        paths.entrySet().stream()
            .map(
                e ->
                    "%s between %s"
                        .formatted(
                            e.getKey(),
                            paths.size() == 1 ? "all pairs" : String.join(", ", e.getValue())))
            .collect(Collectors.joining("; "));
    var up = gpus.all().stream().map(gpu -> "" + gpu.links()).distinct().toList();
    return paths.containsKey(PeerPath.NVLINK)
        ? "%s, %s links up on each GPU".formatted(between, String.join("/", up))
        : between;
  }

  private static Check cuda(Gpus gpus, Cuda cuda) {
    if (gpus.count() == 0) {
      return Check.absent("cuda", "CUDA", NO_GPU);
    }
    return cuda.missing().isEmpty()
        ? Check.ok("cuda", "CUDA", cuda.words())
        : Check.missing("cuda", "CUDA", cuda.missing(), "run on the host: --backend host");
  }

  private static List<Check> memory(Gpus gpus, Cuda cuda, Paths paths) {
    var ofHost = "host: shared memory, mapped by every rank";
    var none = gpus.count() == 0 ? NO_GPU : cuda.missing().isEmpty() ? "" : "needs CUDA, see above";
    var virtual =
        !none.isEmpty() || cuda.sharesVirtualMemory()
            ? none
            : "the driver cannot share virtual memory by file descriptors";
    boolean apart = paths.pairs.containsKey(PeerPath.NONE);
    return List.of(
        Check.ok(
            "memory_native",
            "memory native",
            virtual.isEmpty()
                ? "cuda: virtual memory, passed by file descriptors; " + ofHost
                : gpus.count() == 0 ? ofHost : "%s; cuda: %s".formatted(ofHost, virtual)),
        kind(
            MemoryKind.IPC,
            none.isEmpty() && apart ? "not between GPUs that do not reach each other" : none,
            "cuda: CUDA IPC handles; no contiguous view of all ranks"),
        kind(
            MemoryKind.NCCL,
            virtual.isEmpty() ? lacks(MemoryKind.NCCL, gpus) : virtual,
            "cuda: native memory as NCCL windows"),
        kind(
            MemoryKind.NVSHMEM,
            none.isEmpty() ? lacks(MemoryKind.NVSHMEM, gpus) : none,
            "cuda: NVSHMEM's symmetric heap"));
  }

  /// Returns why the kind's library is missing or too old; empty if it is neither.
  private static String lacks(MemoryKind kind, Gpus gpus) {
    var library = CudaMemory.feature(kind).component().library().orElseThrow();
    return Libraries.find(library).isEmpty()
        ? "needs %s, see above".formatted(library.title())
        : FeatureTable.of(gpus).refusal(kind).orElse("");
  }

  private static Check kind(MemoryKind kind, String whyNot, String description) {
    var id = "memory_" + kind;
    var title = "memory " + kind;
    return whyNot.isEmpty() ? Check.ok(id, title, description) : Check.absent(id, title, whyNot);
  }
}
