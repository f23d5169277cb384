package braid.launcher.cli.doctor;

import braid.launcher.cli.home.Env;
import braid.natives.BlasBuild;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/// The native libraries: OpenBLAS, which Braid brings and loads here, and those of the GPUs, which
/// are only looked for.
final class LibraryChecks {
  private record Wanted(String id, String title, String file, String home) {}

  private static final List<Wanted> OF_GPUS =
      List.of(
          new Wanted("cuda_driver", "CUDA driver", "libcuda.so", "CUDA"),
          new Wanted("cuda_runtime", "CUDA runtime", "libcudart.so", "CUDA"),
          new Wanted("nccl", "NCCL", "libnccl.so", "NCCL"),
          new Wanted("nvshmem", "NVSHMEM", "libnvshmem_host.so", "NVSHMEM"));

  private static final List<String> USUAL_PLACES =
      List.of(
          "/usr/local/cuda/lib64",
          "/usr/lib/x86_64-linux-gnu",
          "/usr/lib/aarch64-linux-gnu",
          "/usr/lib64",
          "/usr/lib",
          "/usr/local/lib");

  private LibraryChecks() {}

  static List<Check> all(Env env) {
    var checks = new ArrayList<Check>();
    checks.add(openBlas());
    for (var wanted : OF_GPUS) {
      checks.add(search(wanted, env));
    }
    return checks;
  }

  private static Check openBlas() {
    try {
      var build = BlasBuild.load();
      return Check.ok("openblas", "OpenBLAS", build.config() + ", threads " + build.threads());
    } catch (LinkageError e) {
      return Check.missing(
          "openblas",
          "OpenBLAS",
          "cannot be loaded: " + String.valueOf(e.getMessage()).lines().findFirst().orElse("" + e),
          "build again: mvn -DskipTests package");
    }
  }

  private static Check search(Wanted wanted, Env env) {
    var places = places(wanted, env);
    for (var place : places) {
      var file = find(place, wanted.file);
      if (file.isPresent()) {
        return Check.ok(wanted.id, wanted.title, file.get().toString());
      }
    }
    return Check.absent(
        wanted.id,
        wanted.title,
        "no %s in %s"
            .formatted(
                wanted.file,
                places.stream().map(Path::toString).collect(Collectors.joining(", "))));
  }

  /// Only what exists: the rest was not looked at.
  private static List<Path> places(Wanted wanted, Env env) {
    var places = new LinkedHashSet<>(env.libraryPath());
    env.homeOf(wanted.home)
        .ifPresent(home -> places.addAll(List.of(home.resolve("lib64"), home.resolve("lib"))));
    USUAL_PLACES.forEach(place -> places.add(Path.of(place)));
    return places.stream().filter(Files::isDirectory).toList();
  }

  private static Optional<Path> find(Path place, String file) {
    try (var matches = Files.newDirectoryStream(place, file + "*")) {
      for (var match : matches) {
        return Optional.of(match);
      }
      return Optional.empty();
    } catch (IOException e) {
      return Optional.empty(); // may not be read, so nothing can be loaded from it
    }
  }
}
