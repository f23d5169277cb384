package braid.schedule.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.schedule.Schedule;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class MachineTest {
  static List<String> names() {
    return Machine.names();
  }

  @ParameterizedTest
  @MethodSource("names")
  void everyDescribedMachineIsReadAndWrittenAndSaysThatItIsNotCalibrated(String name) {
    var machine = Machine.named(name);
    assertThat(machine.name()).isEqualTo(name);
    assertThat(machine.title()).isEqualTo(name + ", not calibrated");
    assertThat(Machine.parse(machine.toString())).isEqualTo(machine);
    assertThat(machine.gemmNanos(DType.BF16, 4096, 8192, 8192)).isPositive();
  }

  @Test
  void theNearestMachineHasTheSameGpus() {
    assertThat(Machine.nearest("NVIDIA H200").name()).isEqualTo("h200x8");
    assertThat(Machine.nearest("GPU 0: NVIDIA H200 NVL").name()).isEqualTo("h200x8");
    assertThat(Machine.nearest("NVIDIA H100 80GB HBM3").name()).isEqualTo("h100x8");
    assertThat(Machine.nearest("NVIDIA GeForce RTX 4090").name()).isEqualTo("h100x8");
  }

  @Test
  void hostsOfAMachineAreBehindASlowerLink() {
    var machine = Machine.named("h200x8x4hosts");
    assertThat(machine.link(0, 7)).isEqualTo(Machine.h200x8().links().inside());
    assertThat(machine.link(7, 8).bytesPerSecond())
        .isLessThan(machine.link(0, 7).bytesPerSecond() / 4);
  }

  @Test
  void anUnknownNameListsTheKnownOnes() {
    assertThatThrownBy(() -> Machine.named("h300x8"))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "a machine must be one of h100x8, h200x8, h200x8x4hosts but was `h300x8`; read others"
                + " with Machine.parse");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          ranks per host = 8    | ranks per host = 0     | ranks per host must be 1 or more but was 0
          ranks per host = 8    | ranks per host = many  | `ranks per host`: must be a whole number but was many
          calibrated = no       | calibrated = perhaps   | `calibrated`: must be no or a time but was perhaps
          yielding share = 0.1  | yielding share = 2     | yielding share must be more than 0 and at most 1 but was 2.0
          event = 1us           | event = 1 day          | `event`: must be a time in ns, us or ms but was 1 day
          event = 1us           | events = 1us           | a machine must set `event` but does not
          event = 1us           | event 1us              | a line of a machine must be `setting = value` but was `event 1us`
          link inside a host = 370GB/s,3us | link inside a host = fast | `link inside a host`: a link must be written
          memory bandwidth = 1900GB/s | memory bandwidth = 0GB/s | `memory bandwidth`: a link's bandwidth must be more than 0
          # SMs.                | name = twice           | `name` of a machine must be set once
          # SMs.                | color = green          | a machine has no setting `color`
          256:640000            | 128:640000             | must contain each number of rows once but contains 128 twice
          256:640000            | 256:0                  | a rate must be more than 0 GFLOPS but was 0.0
          gemm bf16 n8192 k8192 | gemm bf16 large        | rates of multiplications must be named by type, columns and depth
          computation beside copies = 1 | computation beside copies = 0.5 | computation beside copies must take 1 times its time alone or more but took 0.5
          weights = 3.7e12      | weights = 0            | attention weights must be more than 0 but was 0.0
          weights = 3.7e12      | weight = 1             | a machine must set `weights` but does not
          gemm bf16 n8192       | gemm bf17 n8192        | dtype must be one of
          """)
  void aBadSettingIsOneLine(String good, String bad, String message) throws IOException {
    var text = described("h200x8");
    assertThat(text).contains(good);
    assertThatThrownBy(
            () -> Machine.parse(text.replaceFirst(java.util.regex.Pattern.quote(good), bad)))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .message()
        .hasLineCount(1);
  }

  private static String described(String name) throws IOException {
    try (var text = MachineTest.class.getResourceAsStream("/braid/machines/" + name + ".txt")) {
      assertThat(text).isNotNull();
      return new String(text.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
    }
  }

  /// Packing each operand takes time proportional to its size, and each call a fixed time.
  @Test
  void ratesOfAnAdditiveTimeAreInterpolatedExactly() {
    var rows = List.of(16, 256, 1024);
    var sizes = List.of(64, 512);
    var gflops = new java.util.ArrayList<Double>();
    for (int n : sizes) {
      for (int k : sizes) {
        for (int m : rows) {
          gflops.add(2.0 * m * n * k / additive(m, n, k));
        }
      }
    }
    var rates = new GemmRates(rows, sizes, sizes, gflops);
    for (double[] mnk :
        new double[][] {{16, 64, 64}, {100, 300, 77}, {700, 100, 500}, {900, 400, 450}}) {
      assertThat(rates.nanos(mnk[0], mnk[1], mnk[2]))
          .isCloseTo(
              additive(mnk[0], mnk[1], mnk[2]), within(1e-6 * additive(mnk[0], mnk[1], mnk[2])));
    }
  }

  private static double additive(double m, double n, double k) {
    return 2 * m * n * k / 100 + 0.3 * m * k + 0.2 * k * n + 0.1 * m * n + 400;
  }

  @Test
  void nothingIsFasterThanTheHighestRate() {
    var rates = new GemmRates(List.of(128, 256), List.of(64), List.of(64), List.of(100.0, 1000.0));
    assertThat(rates.nanos(1024, 64, 64)).isEqualTo(2.0 * 1024 * 64 * 64 / 1000);
  }

  @Test
  void aHostHasTheGivenNumberOfRanks() {
    var hosts = Machine.named("h200x8x4hosts");
    var pairs = hosts.withRanksPerHost(2);
    assertThat(pairs.link(0, 1)).isEqualTo(hosts.link(0, 7)).isNotEqualTo(pairs.link(1, 2));
    assertThat(pairs.link(1, 2)).isEqualTo(hosts.link(7, 8));
    assertThat(pairs.withRanksPerHost(8)).isEqualTo(hosts);
  }

  private static Machine calibrated() {
    var other = Machine.h200x8();
    return new Machine(
        "4 ranks of this host",
        Optional.of(
            new Calibration(
                "NVIDIA H200",
                "braid 0.1.0; driver 580.82",
                4,
                Instant.parse("2026-11-26T15:10:00.5Z"),
                List.of("link between hosts", "gemm fp8_e5m2"))),
        4,
        other.links(),
        other.compute(),
        other.costs());
  }

  @Test
  void aCalibrationIsReadAsItWasWrittenAndNamedInCaptions() {
    var machine = calibrated();
    assertThat(Machine.parse(machine.toString())).isEqualTo(machine);
    assertThat(machine.title())
        .isEqualTo("4 ranks of this host, calibrated on NVIDIA H200, 2026-11-26");
    assertThat(machine.toString())
        .contains(
            "calibrated = 2026-11-26T15:10:00Z\n",
            "calibrated on = NVIDIA H200\n",
            "not measured here = link between hosts, gemm fp8_e5m2\n");
    var run =
        Schedule.of(GemmSpec.allGatherGemm(64, 64, 64), Overlap.unfused(), 4)
            .simulate(machine.withLink(Link.UNLIMITED), 1);
    assertThat(run.configuration())
        .containsEntry("machine", "4 ranks of this host")
        .containsEntry("calibrated", "calibrated on NVIDIA H200, 2026-11-26");
  }

  @Test
  void aCalibrationIsFoundByItsDeviceAndRanks(@TempDir Path cache) throws IOException {
    var file = Calibration.file(cache, "NVIDIA H200", 4);
    assertThat(MachineCache.calibration(cache, "NVIDIA H200", 4)).isEmpty();
    Files.createDirectories(cache.resolve("machines"));
    Files.writeString(file, calibrated().toString());
    assertThat(MachineCache.calibration(cache, "NVIDIA H200", 4)).contains(calibrated());
    assertThat(MachineCache.calibration(cache, "NVIDIA H200", 2)).isEmpty();
    assertThat(MachineCache.calibration(cache, "NVIDIA H100", 4)).isEmpty();
    Files.writeString(file, "damaged");
    assertThatThrownBy(() -> MachineCache.calibration(cache, "NVIDIA H200", 4))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("the calibration " + file + " must be readable but is not (")
        .hasMessageEndingWith("; delete it, or run braid calibrate again");
  }

  @Test
  void thisHostIsMeasuredOnceAndKept(@TempDir Path cache) throws IOException {
    var file = Files.createDirectories(cache.resolve("machines")).resolve(MachineCache.fileName(2));
    Files.writeString(file, "damaged");
    var measured = MachineCache.of(2, cache);
    assertThat(measured.calibration()).isEmpty();
    assertThat(measured.ranksPerHost()).isEqualTo(2);
    assertThat(measured.links().serial()).isTrue();
    // A multiplication of 0.27 GFLOP takes any processor 0.1 ms to 1 s.
    assertThat(measured.gemmNanos(DType.FP32, 512, 512, 512)).isBetween(1e5, 1e9);
    assertThat(Machine.parse(Files.readString(file))).isEqualTo(measured);
    Files.writeString(file, Files.readString(file).replace("name = this host", "name = kept"));
    assertThat(MachineCache.of(2, cache).name()).startsWith("kept");
    assertThat(measured.withLink(Link.parse("1GB/s,5us")).link(0, 1))
        .isEqualTo(Link.parse("1GB/s,5us"));
  }
}
