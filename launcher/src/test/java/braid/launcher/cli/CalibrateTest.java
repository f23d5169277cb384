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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CalibrateTest {
  @TempDir Path directory;

  private Ran braid(String... arguments) throws IOException, InterruptedException {
    var environment = Map.of("BRAID_CACHE", directory.resolve("cache").toString());
    return Ran.apart(directory, environment, (_, _) -> {}, arguments);
  }

  @Test
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
}
