package braid.launcher.machine;

import braid.natives.cuda.GpuError;
import braid.natives.load.Feature;
import braid.natives.nvml.GpuFacts;
import braid.natives.nvml.Nvml;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/// GPUs that ranks of this process could use, as CUDA would number them.
///
/// @param missing why there are none; empty if there are
/// @param driver version of the driver and of its CUDA, for example `580.95.05, CUDA 13.0`; empty
///   if the driver is unavailable
public record Gpus(List<GpuFacts> all, String missing, String driver) {
  private static final String CUDA = ", CUDA ";
  private static final Pattern DEVICE = Pattern.compile("nvidia[0-9]+");
  private static final Pattern INDEX = Pattern.compile("[0-9]{1,4}");

  public Gpus {
    all = List.copyOf(all);
  }

  public static Gpus none(String why) {
    return new Gpus(List.of(), why, "");
  }

  /// Returns this machine's GPUs. Queries the driver's library without touching a GPU.
  ///
  /// @param visible `CUDA_VISIBLE_DEVICES`, if set
  public static Gpus here(Optional<String> visible) {
    if (!hasDevice()) {
      return none("no /dev/nvidia0");
    }
    var unavailable = Nvml.missing();
    if (unavailable.isPresent()) {
      return none("the driver does not answer: " + unavailable.get());
    }
    try (var nvml = Nvml.open()) {
      var all = nvml.inventory().gpus();
      int cuda = nvml.inventory().cudaVersion();
      var driver = nvml.driverVersion() + CUDA + Feature.cuda(cuda);
      return new Gpus(all, all.isEmpty() ? "the driver finds none" : "", driver).visibleTo(visible);
    } catch (GpuError e) {
      return none("the driver does not answer: " + e.getMessage());
    }
  }

  /// Applies `CUDA_VISIBLE_DEVICES`: CUDA takes the GPUs that it names, in its order, up to the
  /// first invalid name.
  Gpus visibleTo(Optional<String> visible) {
    if (visible.isEmpty() || all.isEmpty()) {
      return this;
    }
    var visibleGpus = new ArrayList<GpuFacts>();
    for (var name : visible.get().split(",", -1)) {
      var gpu = named(name.strip());
      if (gpu.isEmpty() || visibleGpus.contains(gpu.get())) {
        break;
      }
      visibleGpus.add(gpu.get());
    }
    return new Gpus(
        visibleGpus,
        visibleGpus.isEmpty()
            ? "CUDA_VISIBLE_DEVICES is \"%s\" and hides all %d".formatted(visible.get(), all.size())
            : "",
        driver);
  }

  private Optional<GpuFacts> named(String name) {
    if (INDEX.matcher(name).matches()) {
      int index = Integer.parseInt(name);
      return index < all.size() ? Optional.of(all.get(index)) : Optional.empty();
    }
    return name.startsWith("GPU-")
        ? all.stream().filter(gpu -> gpu.uuid().startsWith(name)).findFirst()
        : Optional.empty();
  }

  public int count() {
    return all.size();
  }

  /// Returns the newest CUDA that the driver supports, for example `13.0`; empty if unknown.
  public Optional<String> cuda() {
    int position = driver.lastIndexOf(CUDA);
    return position < 0
        ? Optional.empty()
        : Optional.of(driver.substring(position + CUDA.length()));
  }

  /// Returns the lowest compute capability of the GPUs, for example `9.0`; empty without a GPU.
  public Optional<String> capability() {
    return all.stream()
        .min(Comparator.comparingInt(GpuFacts::major).thenComparingInt(GpuFacts::minor))
        .map(gpu -> gpu.major() + "." + gpu.minor());
  }

  /// Describes the GPUs: "2 x NVIDIA H200", or why there are none.
  public String words() {
    if (all.isEmpty()) {
      return "none: " + missing;
    }
    var counts = all.stream().collect(Collectors.groupingBy(GpuFacts::name, Collectors.counting()));
    return counts.entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .map(e -> e.getValue() + " x " + e.getKey())
        .collect(Collectors.joining(", "));
  }

  private static boolean hasDevice() {
    try (var devices = Files.newDirectoryStream(Path.of("/dev"), "nvidia*")) {
      for (var device : devices) {
        if (DEVICE.matcher(device.getFileName().toString()).matches()) {
          return true;
        }
      }
      return false;
    } catch (IOException e) {
      return false; // without a readable /dev no GPU is usable
    }
  }
}
