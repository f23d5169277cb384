package braid.launcher.bench.report;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Locale;

/// Machine and time of a measurement. The load is the average number of runnable processes in the
/// minute before; above zero, other programs were running.
public record Machine(
    Instant when,
    String processor,
    int cores,
    long memoryMiB,
    String java,
    String os,
    double load) {
  public static Machine here() {
    var bean = ManagementFactory.getOperatingSystemMXBean();
    return new Machine(
        Instant.now().truncatedTo(ChronoUnit.SECONDS),
        field(Path.of("/proc/cpuinfo"), "model name", bean.getArch()),
        Runtime.getRuntime().availableProcessors(),
        bean instanceof com.sun.management.OperatingSystemMXBean machine
            ? machine.getTotalMemorySize() >> 20
            : 0,
        System.getProperty("java.vm.vendor", "") + " " + Runtime.version(),
        field(Path.of("/etc/os-release"), "PRETTY_NAME", bean.getName())
            + ", "
            + bean.getName()
            + " "
            + bean.getVersion().replaceFirst("-.*", ""),
        bean.getSystemLoadAverage());
  }

  private static String field(Path file, String name, String otherwise) {
    try {
      return Files.readAllLines(file).stream()
          .filter(line -> line.startsWith(name))
          .map(line -> line.replaceFirst("^[^:=]*[:=]", "").replace('"', ' ').strip())
          .findFirst()
          .orElse(otherwise);
    } catch (IOException e) {
      return otherwise; // not Linux: use the JVM's own facts
    }
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT,
        "%s, %d cores, %.1f GiB; Java %s; %s; load before: %.1f",
        processor,
        cores,
        memoryMiB / 1024.0,
        java,
        os,
        load);
  }
}
