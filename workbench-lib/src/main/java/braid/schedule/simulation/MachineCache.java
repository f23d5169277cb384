package braid.schedule.simulation;

import braid.model.BraidException;
import braid.natives.WholeFile;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Caches measured machines on disk: one per processor model, number of cores, JDK, JIT compiler
/// and number of ranks.
final class MachineCache {
  private static final String FOLDER = "machines";

  /// Part of the file name; changes with the measurement.
  private static final int VERSION = 3;

  private static final Object ONE_AT_A_TIME = new Object();

  private MachineCache() {}

  /// Returns the cached machine, or measures it. Only one of several processes measures.
  static Machine of(int ranks, Path cache) {
    var folder = cache.resolve(FOLDER);
    var file = folder.resolve(fileName(ranks));
    synchronized (ONE_AT_A_TIME) {
      try {
        Files.createDirectories(folder);
        try (var lock = new RandomAccessFile(folder.resolve("lock").toFile(), "rw");
            var _ = lock.getChannel().lock()) {
          var cached = read(file);
          if (cached != null) {
            return cached;
          }
          var measured = MeasuredHost.measure(ranks);
          WholeFile.write(file, measured.toString());
          return measured;
        }
      } catch (IOException e) {
        throw new BraidException(
            "the measured machine cannot be stored in %s (%s); make it writable or set BRAID_CACHE"
                .formatted(folder, e),
            e);
      }
    }
  }

  private static @Nullable Machine read(Path file) throws IOException {
    try {
      return Machine.parse(Files.readString(file));
    } catch (NoSuchFileException e) {
      return null;
    } catch (BraidException e) {
      // Damaged, or of another version: measured again.
      return null;
    }
  }

  /// Returns what `braid calibrate` measured last with that device and number of ranks.
  static Optional<Machine> calibration(Path cache, String device, int ranks) {
    var file = Calibration.file(cache, device, ranks);
    try {
      return Optional.of(Machine.parse(Files.readString(file)));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    } catch (IOException | BraidException e) {
      throw new BraidException(
          "the calibration %s must be readable but is not (%s); delete it, or run braid calibrate again"
              .formatted(file, e.getMessage()),
          e);
    }
  }

  private static String words(String text) {
    return text.replaceAll("[^A-Za-z0-9._-]+", "_");
  }

  static String fileName(int ranks) {
    return words(
        "%s-%d-cores-%d-ranks-jdk-%s-%s-%d.txt"
            .formatted(
                processor(),
                Runtime.getRuntime().availableProcessors(),
                ranks,
                Runtime.version(),
                System.getProperty("java.vm.info"),
                VERSION));
  }

  /// Returns the processor model from Linux, or the architecture.
  static String processor() {
    try (var lines = Files.lines(Path.of("/proc/cpuinfo"))) {
      return lines
          .filter(line -> line.startsWith("model name"))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst()
          .orElseGet(() -> System.getProperty("os.arch"));
    } catch (IOException e) {
      return System.getProperty("os.arch");
    }
  }
}
