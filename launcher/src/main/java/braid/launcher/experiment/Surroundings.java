package braid.launcher.experiment;

import braid.launcher.machine.Gpus;
import braid.natives.cuda.GpuError;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import braid.natives.nvml.Nvml;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/// Surroundings of a run that may change its times: Java, the machine, the GPUs, the libraries, the
/// environment. Collecting them loads and starts nothing, since the run follows at once.
public final class Surroundings {
  private static final Pattern OPENBLAS =
      Pattern.compile("openblas-(\\d[^-]*-[^-]*)-linux.*\\.jar");

  private Surroundings() {}

  /// @param environment relevant variables
  /// @param ofRanks variables of the ranks that replace those of this process
  public static JsonObject here(
      String braidVersion,
      Map<String, String> environment,
      Gpus gpus,
      Map<String, String> ofRanks) {
    var json = new JsonObject();
    json.add("braid", object("version", braidVersion));
    json.add("java", java());
    json.add("machine", machine());
    json.add("gpus", gpus(gpus));
    json.add("libraries", libraries(gpus, ofRanks));
    var variables = new JsonObject();
    environment.forEach(variables::addProperty);
    json.add("environment", variables);
    json.add(
        "jars", Jars.of(System.getProperty("java.class.path", "").split(File.pathSeparator, -1)));
    return json;
  }

  private static JsonObject object(String name, String value) {
    var json = new JsonObject();
    json.addProperty(name, value);
    return json;
  }

  private static JsonObject java() {
    var json = object("version", Runtime.version().toString());
    json.addProperty("vendor", System.getProperty("java.vm.vendor", ""));
    json.addProperty("home", System.getProperty("java.home", ""));
    var flags = new JsonArray();
    // Properties of the JVM and of Braid; others could hold secrets.
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(flag -> flag.matches("(-X|--|-Dbraid\\.).*"))
        .forEach(flags::add);
    json.add("flags", flags);
    return json;
  }

  /// Returns the processor, memory, system and load of this machine.
  public static JsonObject machine() {
    var bean = ManagementFactory.getOperatingSystemMXBean();
    var json = new JsonObject();
    json.addProperty("host", line(Path.of("/proc/sys/kernel/hostname")).orElse("not told"));
    json.addProperty("os", field(Path.of("/etc/os-release"), "PRETTY_NAME").orElse(bean.getName()));
    json.addProperty("kernel", bean.getName() + " " + bean.getVersion());
    json.addProperty(
        "processor", field(Path.of("/proc/cpuinfo"), "model name").orElse(bean.getArch()));
    json.addProperty("cores", Runtime.getRuntime().availableProcessors());
    if (bean instanceof com.sun.management.OperatingSystemMXBean machine) {
      json.addProperty("memoryMiB", machine.getTotalMemorySize() >> 20);
    }
    json.addProperty(
        "governor",
        line(Path.of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")).orElse("not told"));
    json.addProperty("load", load());
    return json;
  }

  /// Returns the load average of the last minute, which includes the ranks; negative if the system
  /// does not tell it.
  static double load() {
    return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
  }

  private static Optional<String> line(Path file) {
    try {
      return Files.readString(file).lines().findFirst().map(String::strip);
    } catch (IOException e) {
      return Optional.empty(); // not a Linux, or a container that hides it: it is not told
    }
  }

  private static Optional<String> field(Path file, String name) {
    try (var lines = Files.lines(file)) {
      return lines
          .filter(line -> line.startsWith(name))
          .map(line -> line.replaceFirst("^[^:=]*[:=]", "").replace('"', ' ').strip())
          .findFirst();
    } catch (IOException e) {
      return Optional.empty(); // as above
    }
  }

  private static JsonObject gpus(Gpus gpus) {
    var json = object("words", gpus.words());
    if (gpus.count() == 0) {
      return json;
    }
    json.addProperty("driver", gpus.driver());
    try (var nvml = Nvml.open()) {
      var inventory = nvml.inventory();
      var all = new JsonArray();
      for (var gpu : gpus.all()) {
        var settings = inventory.settings(gpu.index());
        var one = object("name", gpu.name());
        one.addProperty("uuid", gpu.uuid());
        one.addProperty("memoryMiB", gpu.totalBytes() >> 20);
        one.addProperty("capability", gpu.major() + "." + gpu.minor());
        one.addProperty("highestSmClockMhz", settings.highestSmClockMhz());
        one.addProperty("highestMemoryClockMhz", settings.highestMemoryClockMhz());
        one.addProperty("powerLimitWatts", settings.powerLimitWatts());
        one.addProperty("linksUp", gpu.links());
        all.add(one);
      }
      json.add("all", all);
      var paths = new JsonObject();
      for (int from = 0; from < gpus.count(); from++) {
        for (int to = from + 1; to < gpus.count(); to++) {
          paths.addProperty(
              from + "-" + to,
              inventory.path(gpus.all().get(from).index(), gpus.all().get(to).index()).toString());
        }
      }
      json.add("paths", paths);
    } catch (GpuError e) {
      json.addProperty("untold", String.valueOf(e.getMessage()));
    }
    return json;
  }

  /// Without a GPU, ranks load none of NVIDIA's libraries unless a variable chooses their folder.
  private static JsonObject libraries(Gpus gpus, Map<String, String> ofRanks) {
    var json = new JsonObject();
    for (var entry : System.getProperty("java.class.path", "").split(File.pathSeparator, -1)) {
      var jar = OPENBLAS.matcher(String.valueOf(Path.of(entry).getFileName()));
      if (jar.matches()) {
        json.addProperty("openblas", jar.group(1));
      }
    }
    if (gpus.count() > 0 || ofRanks.containsKey(Libraries.FOLDERS)) {
      for (var library : Library.values()) {
        Libraries.foreseen(library, ofRanks)
            .ifPresent(found -> json.addProperty(library.name().toLowerCase(Locale.ROOT), found));
      }
    }
    return json;
  }
}
