package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.DType;
import braid.model.Link;
import braid.schedule.simulation.Calibration;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CalibrateTest {
  @TempDir Path directory;

  private Ran braid(String... arguments) throws IOException, InterruptedException {
    var environment = Map.of("BRAID_CACHE", directory.resolve("cache").toString());
    return Ran.apart(directory, environment, (_, _) -> {}, arguments);
  }

  /// It measures some 40 s of work alone, and much longer beside other load.
  @Test
  @Timeout(value = 15, unit = TimeUnit.MINUTES)
  void theHostIsMeasuredByRanksIntoAFile() throws Exception {
    var ran = braid("calibrate", "-n", "2", "--backend", "host", "--link", "1GB/s,20us");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    var device = Machine.host();
    var file = Calibration.file(directory.resolve("cache"), device, 2);
    assertThat(ran.out())
        .startsWith("2 ranks of this host, calibrated on " + device)
        .contains("GEMM fp32", "reduce bandwidth", "not measured here", "written to " + file);
    var machine = Machine.parse(Files.readString(file));
    var calibration = machine.calibration().orElseThrow();
    assertThat(calibration.ranks()).isEqualTo(2);
    assertThat(calibration.versions()).contains("java " + Runtime.version(), "openblas");
    assertThat(calibration.missing()).contains("link between hosts");
    assertThat(machine.ranksPerHost()).isEqualTo(2);
    assertThat(machine.link(0, 1)).isEqualTo(Link.parse("1GB/s,20us"));
    // A multiplication of 0.27 GFLOP takes any processor 0.1 ms to 1 s.
    assertThat(machine.gemmNanos(DType.FP32, 512, 512, 512)).isBetween(1e5, 1e9);
    assertThat(machine.links().bytesPerCore()).isBetween(1e8, 1e12);
    assertThat(machine.costs().synchronize() + machine.costs().step()).isPositive();
    // It left nothing else.
    assertThat(directory.toFile().list()).containsExactly("cache");
  }

  @Test
  void aMistakeIsFoundBeforeRanksStart() throws Exception {
    var ran = braid("calibrate", "-n", "2", "--backend", "host", "--link", "fast");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err()).startsWith("braid: a link must be written").hasLineCount(1);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          calibrate -o none/machine.txt | --output must be a file to write but none/machine.txt is in a directory that does not exist
          bench predictions --check none | --check must be a file that --record has written but none cannot be read
          bench predictions --check record | a record of predictions must have a line `seed …` but has none; record again
          bench predictions --check seed | a record of predictions must have whole numbers but has For input string: "x"; record again
          bench predictions -n 3 --check other | --check must be a record of 3 ranks, backend host, but is of 2, backend cuda; try -n 2 --backend cuda
          """)
  void filesAreCheckedBeforeRanksStart(String command, String message) throws Exception {
    Files.writeString(directory.resolve("record"), "nothing");
    Files.writeString(directory.resolve("seed"), "seed x");
    Files.writeString(
        directory.resolve("other"), "seed 1\nranks 2\nnanoseconds 5\n" + Machine.h200x8());
    var ran = braid((command + " --backend host").split(" ", -1));
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err()).startsWith("braid: " + message).hasLineCount(1);
  }
}
