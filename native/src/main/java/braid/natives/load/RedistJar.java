package braid.natives.load;

import braid.natives.load.Libraries.Library;
import java.io.IOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import org.bytedeco.javacpp.Loader;

/// Finds copies of NVIDIA's libraries in the redist jar of JavaCPP's CUDA presets, if the jar is on
/// the class path. A copy is unpacked into JavaCPP's cache only if no newer one is found elsewhere.
final class RedistJar {
  private static final Pattern JAR = Pattern.compile(".*/cuda-redist-(\\d+(?:\\.\\d+)*)-.*");

  private RedistJar() {}

  /// Returns the copy in the jar, if present. It is not unpacked yet: its paths are those inside
  /// the jar.
  static List<Candidate> of(Library library) {
    if (library.standsAlone()) {
      return List.of(); // never in the jar; searching would open every jar
    }
    var urls = urls(library.files());
    if (urls.size() < library.files().size()) {
      return List.of();
    }
    return List.of(
        new Candidate(
            SearchFolder.Source.REDIST,
            urls.stream().map(url -> Path.of(url.getPath())).toList(),
            version(library, urls.getFirst())));
  }

  /// Unpacks the copy, with the companion files that it loads by name.
  static Candidate unpack(Library library, Candidate packed) throws IOException {
    var files = new ArrayList<Path>();
    for (URL url : urls(library.files())) {
      files.add(file(url));
    }
    for (URL url : urls(library.companions())) {
      file(url);
    }
    return new Candidate(packed.source(), List.copyOf(files), packed.version());
  }

  private static Path file(URL url) throws IOException {
    if (url.getProtocol().equals("file")) {
      try {
        return Path.of(url.toURI());
      } catch (URISyntaxException e) {
        throw new IOException("%s is not a path".formatted(url), e);
      }
    }
    return Loader.cacheResource(url).toPath();
  }

  private static List<URL> urls(List<String> names) {
    var loader = RedistJar.class.getClassLoader();
    var urls = new ArrayList<URL>();
    for (String name : names) {
      var url = loader.getResource("org/bytedeco/cuda/%s/%s".formatted(platform(), name));
      if (url != null) {
        urls.add(url);
      }
    }
    return urls;
  }

  /// Returns the version in the jar's name, which is the CUDA toolkit's. Empty for libraries with
  /// version numbers of their own.
  private static Optional<Version> version(Library library, URL url) {
    return switch (library) {
      case CUDA_RUNTIME, NVRTC, CUPTI -> {
        var matcher = JAR.matcher(url.getPath());
        yield matcher.matches() ? Version.of(matcher.group(1)) : Optional.empty();
      }
      case CUDA_DRIVER, CUBLAS_LT, CUBLAS_MP, CUDNN, NCCL, NVML, NVSHMEM, NVTX, NVTX_2, UCX ->
          Optional.empty();
    };
  }

  private static String platform() {
    return System.getProperty("os.arch", "").equals("aarch64") ? "linux-arm64" : "linux-x86_64";
  }
}
