package braid.schedule.simulation;

import braid.model.BraidException;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;

/// Conditions of a machine's measurement by `braid calibrate`.
///
/// @param device processor with its number of cores, or GPU
/// @param versions versions of Braid, Java, driver and libraries, such as `braid 0.1.0, java 25`
/// @param ranks number of ranks that measured together
/// @param time end of the measurement, to the second
/// @param missing settings that were not measured here
public record Calibration(
    String device, String versions, int ranks, Instant time, List<String> missing) {
  public Calibration {
    Hardware.atLeast("calibrated ranks", ranks, 1);
    device = line("device", device);
    versions = line("versions", versions);
    time = time.truncatedTo(ChronoUnit.SECONDS);
    missing = List.copyOf(missing);
  }

  private static String line(String setting, String text) {
    if (text.isBlank() || text.lines().count() != 1) {
      throw new BraidException(
          "the %s of a calibration must be one line but was `%s`; for example NVIDIA H200"
              .formatted(setting, text));
    }
    return text.strip();
  }

  /// Returns the file of the newest calibration of this host with that device and number of ranks.
  ///
  /// @param cache cache folder, `BRAID_CACHE`
  public static Path file(Path cache, String device, int ranks) {
    var name = "calibrated-%s-%d-ranks".formatted(device, ranks);
    return cache.resolve("machines").resolve(name.replaceAll("[^A-Za-z0-9._-]+", "_") + ".txt");
  }

  /// Returns "calibrated on NVIDIA H200, 2026-11-26".
  @Override
  public String toString() {
    return "calibrated on %s, %s".formatted(device, LocalDate.ofInstant(time, ZoneOffset.UTC));
  }
}
