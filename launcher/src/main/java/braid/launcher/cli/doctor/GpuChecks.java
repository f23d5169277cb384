package braid.launcher.cli.doctor;

import braid.MemoryKind;
import braid.launcher.machine.Gpus;
import braid.natives.cuda.GpuError;
import braid.natives.nvml.GpuFacts;
import braid.natives.nvml.Nvml;
import braid.natives.nvml.PeerPath;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.stream.Collectors;

/// The GPUs, how they reach each other, and what depends on them: the kinds of symmetric memory,
/// and multicast.
final class GpuChecks {
  private static final List<MemoryKind> KINDS_OF_GPUS =
      List.of(MemoryKind.IPC, MemoryKind.NCCL, MemoryKind.NVSHMEM);

  private GpuChecks() {}

  static List<Check> all(Gpus gpus) {
    var checks = new ArrayList<Check>();
    checks.add(gpus(gpus));
    checks.add(driver(gpus));
    checks.add(links(gpus));
    checks.add(
        Check.ok("memory_native", "memory native", "host: shared memory, mapped by every rank"));
    for (var kind : KINDS_OF_GPUS) {
      checks.add(
          Check.absent(
              "memory_" + kind, "memory " + kind, "needs a GPU, and there is " + gpus.words()));
    }
    checks.add(
        Check.ok(
            "multicast",
            "multicast",
            "software fan-out: one copy a receiver; hardware multicast is not used"));
    return checks;
  }

  private static Check gpus(Gpus gpus) {
    if (gpus.count() == 0) {
      return Check.absent("gpus", "GPUs", gpus.words());
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
        ? Check.absent("gpu_driver", "GPU driver", "not asked: " + gpus.missing())
        : Check.ok("gpu_driver", "GPU driver", gpus.driver());
  }

  private static Check links(Gpus gpus) {
    if (gpus.count() < 2) {
      return Check.absent(
          "gpu_links", "GPU links", gpus.count() == 1 ? "one GPU alone" : gpus.words());
    }
    try (var nvml = Nvml.open()) {
      var inventory = nvml.inventory();
      var paths = new LinkedHashMap<PeerPath, List<String>>();
      for (int from = 0; from < gpus.count(); from++) {
        for (int to = from + 1; to < gpus.count(); to++) {
          paths
              .computeIfAbsent(
                  inventory.path(gpus.all().get(from).index(), gpus.all().get(to).index()),
                  _ -> new ArrayList<>())
              .add(from + "-" + to);
        }
      }
      var value = value(paths, gpus);
      return paths.containsKey(PeerPath.NONE)
          ? Check.absent(
              "gpu_links",
              "GPU links",
              value,
              "run ranks on GPUs that reach each other: CUDA_VISIBLE_DEVICES")
          : Check.ok("gpu_links", "GPU links", value);
    } catch (GpuError e) {
      return Check.absent("gpu_links", "GPU links", "not known: " + e.getMessage());
    }
  }

  /// "NVLink between all pairs, 18 links up on each GPU".
  static String value(SequencedMap<PeerPath, List<String>> paths, Gpus gpus) {
    var between =
        paths.entrySet().stream()
            .map(
                e ->
                    e.getKey()
                        + " between "
                        + (paths.size() == 1 ? "all pairs" : String.join(", ", e.getValue())))
            .collect(Collectors.joining("; "));
    var up = gpus.all().stream().map(gpu -> "" + gpu.links()).distinct().toList();
    return paths.containsKey(PeerPath.NVLINK)
        ? "%s, %s links up on each GPU".formatted(between, String.join("/", up))
        : between;
  }
}
