package braid.launcher.cli.doctor;

import braid.MemoryKind;
import braid.launcher.cli.home.Env;
import braid.launcher.session.RankCount;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/// The GPUs, and what depends on them: the kinds of symmetric memory, and multicast.
final class GpuChecks {
  private static final Path DRIVER = Path.of("/proc/driver/nvidia/version");
  private static final long SMI_PATIENCE_SECONDS = 10;
  private static final List<MemoryKind> KINDS_OF_GPUS =
      List.of(MemoryKind.IPC, MemoryKind.NCCL, MemoryKind.NVSHMEM);

  private GpuChecks() {}

  static List<Check> all(Env env, RankCount machine) {
    var checks = new ArrayList<Check>();
    checks.add(gpus(env, machine.gpus()));
    checks.add(driver());
    checks.add(
        Check.ok("memory_native", "memory native", "host: shared memory, mapped by every rank"));
    for (var kind : KINDS_OF_GPUS) {
      checks.add(
          Check.absent(
              "memory_" + kind,
              "memory " + kind,
              machine.gpus() == 0
                  ? "needs a GPU: no /dev/nvidia0"
                  : "this version of Braid runs on the host backend only"));
    }
    checks.add(
        Check.ok("multicast", "multicast", "software fan-out: the host has none in hardware"));
    return checks;
  }

  private static Check gpus(Env env, int count) {
    if (count == 0) {
      return Check.absent("gpus", "GPUs", "none: no /dev/nvidia0");
    }
    var names = fromProc().or(() -> fromSmi(env)).orElse("their names are not known");
    return Check.ok("gpus", "GPUs", count + ": " + names);
  }

  /// "2 x NVIDIA H200", as the driver names them.
  private static Optional<String> fromProc() {
    var gpus = Path.of("/proc/driver/nvidia/gpus");
    if (!Files.isDirectory(gpus)) {
      return Optional.empty();
    }
    try (var directories = Files.list(gpus)) {
      var models = new ArrayList<String>();
      for (var directory : directories.toList()) {
        Files.readAllLines(directory.resolve("information")).stream()
            .filter(line -> line.startsWith("Model:"))
            .forEach(line -> models.add(line.substring("Model:".length()).strip()));
      }
      return counted(models);
    } catch (IOException e) {
      return Optional.empty(); // nvidia-smi is asked next
    }
  }

  private static Optional<String> fromSmi(Env env) {
    var smi = env.program("nvidia-smi");
    if (smi.isEmpty()) {
      return Optional.empty();
    }
    try {
      var process =
          new ProcessBuilder(smi.get().toString(), "--query-gpu=name", "--format=csv,noheader")
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!process.waitFor(SMI_PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return Optional.empty();
      }
      var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return process.exitValue() == 0
          ? counted(text.lines().map(String::strip).filter(line -> !line.isEmpty()).toList())
          : Optional.empty();
    } catch (IOException e) {
      return Optional.empty(); // it says nothing, and so does doctor
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Optional.empty();
    }
  }

  private static Optional<String> counted(List<String> models) {
    var counts =
        models.stream().collect(Collectors.groupingBy(model -> model, Collectors.counting()));
    return Optional.of(
            counts.entrySet().stream()
                .map(e -> e.getValue() + " x " + e.getKey())
                .collect(Collectors.joining(", ")))
        .filter(text -> !text.isEmpty());
  }

  private static Check driver() {
    if (!Files.isReadable(DRIVER)) {
      return Check.absent("gpu_driver", "GPU driver", "none: no " + DRIVER);
    }
    try {
      var version = Files.readAllLines(DRIVER).stream().findFirst().orElse("unknown");
      return Check.ok("gpu_driver", "GPU driver", version.replaceAll("\\s+", " "));
    } catch (IOException e) {
      return Check.absent("gpu_driver", "GPU driver", DRIVER + " cannot be read: " + e);
    }
  }
}
