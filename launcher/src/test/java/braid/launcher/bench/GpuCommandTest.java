package braid.launcher.bench;

import static org.assertj.core.api.Assertions.assertThat;

import braid.bench.Workload;
import braid.launcher.cli.Ran;
import braid.schedule.simulation.Machine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GpuCommandTest {
  private static final Workload GATHER = Workload.all(4, 1).getFirst();
  private static final Workload BESIDE = Workload.all(4, 1).get(3);

  private static GpuTimes times(List<String> other, String... lines) {
    var times = new GpuTimes(other::add);
    for (var line : lines) {
      times.stdout(line.replace(' ', '\t').replace('_', ' ') + "\n");
    }
    return times;
  }

  private static String line(Workload workload, String form, double milliseconds) {
    return "bench %s %s %s"
        .formatted(workload.name().replace(' ', '_'), form.replace(' ', '_'), milliseconds);
  }

  @Test
  void ratiosAreOfTheSameRound() {
    var ours =
        times(
            new ArrayList<>(),
            line(GATHER, "unfused", 2),
            line(GATHER, "ring", 1.1),
            line(GATHER, "unfused", 4),
            line(GATHER, "ring", 2.1),
            line(GATHER, "unfused", 3),
            line(GATHER, "ring", 1.5));
    var peers =
        times(
            new ArrayList<>(),
            line(GATHER, "GEMM alone", 1),
            line(GATHER, "fused", 1.2),
            line(GATHER, "GEMM alone", 2),
            line(GATHER, "fused", 2.4),
            line(GATHER, "GEMM alone", 1.5),
            line(GATHER, "fused", 1.8));
    var text = new GpuTable(List.of(GATHER), ours, peers, Map.of()).text(true);
    // Ratios to the GEMM: 1.1, 1.05 and 1. Hidden: (3 - 1.5) of (3 - 1.5).
    assertThat(text.lines().toList().get(2))
        .isEqualTo(
            "| all-gather GEMM 8192 × 28672 × 8192 | 1.50 | 3.00 | 1.50 | ring | 1.05 (1.00–1.10) | ≤ 1.04 | 0.875 (0.833–0.917) | fused | 100% | – |");
    assertThat(text)
        .contains(
            "| all-gather GEMM 8192 × 28672 × 8192 | PyTorch | fused | 1.80 | 1.20 | 2.40 | – |\n");
  }

  @Test
  void theLeastTimeBesideACollectiveIsTheLargerOfBoth() {
    var ours = times(new ArrayList<>(), line(BESIDE, "unfused", 5), line(BESIDE, "bulk", 3));
    var peers =
        times(
            new ArrayList<>(),
            line(BESIDE, "GEMM alone", 1),
            line(BESIDE, "all-gather alone, NCCL", 2.5),
            line(BESIDE, "all-gather alone, NCCL copy engines", 2),
            line(BESIDE, "beside, NCCL", 4));
    assertThat(
            new GpuTable(List.of(BESIDE), ours, peers, Map.of())
                .text(false)
                .lines()
                .toList()
                .get(2))
        .isEqualTo(
            "| GEMM beside all-gather 8192 × 8192 × 8192 | 1.00 | 5.00 | 3.00 | bulk | 1.50 (1.50–1.50) | – | 0.750 (0.750–0.750) | beside, NCCL | 67% | – |");
  }

  @Test
  void otherOutputIsForwarded() {
    var other = new ArrayList<String>();
    var times = times(other, "a_warning");
    times.stderr("an error\n");
    assertThat(other).containsExactly("a warning", "an error");
    assertThat(times.of(GATHER.name())).isEmpty();
  }

  @Test
  void everyFormThatRunsIsPredicted() {
    var workloads = Workload.all(2, 64);
    var predicted = GpuTable.predicted(workloads, 2, Machine.h100x8());
    assertThat(predicted).hasSameSizeAs(workloads);
    predicted
        .values()
        .forEach(forms -> assertThat(forms.values()).isNotEmpty().allMatch(time -> time > 0));
  }

  @Test
  void runsOnTheHost(@TempDir Path directory) throws Exception {
    var file = directory.resolve("table.md");
    var ran =
        Ran.here(
            "bench",
            "gpu",
            "-n",
            "2",
            "--backend",
            "host",
            "--divide",
            "128",
            "--only",
            "all-reduce 4 ",
            "--iterations",
            "2",
            "--rounds",
            "1",
            "--machine",
            "h100x8",
            "--markdown",
            file.toString());
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.err()).contains("the backend is host, so only Braid is timed", "round 1 of 1");
    assertThat(ran.out())
        .contains("| GEMM all-reduce 4 × 64 × 224 | – | ", "| Braid | unfused")
        .doesNotContain("PyTorch | fused");
    assertThat(Files.readString(file)).isEqualTo(ran.out());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--rounds 0|braid: --rounds must be 1..1000 but was 0; try --rounds 3",
        "--divide 1000|braid: --divide must be 1..256 but was 1000; try --divide 3",
        "--only softmax|braid: --only must be part of a workload's name but was softmax; the names are",
        "--machine none|braid: a machine must be",
        "--markdown none/t.md|braid: --markdown must be a file to write but none/t.md is in a",
      })
  void refusesBadOptions(String options, String message) {
    var arguments = new ArrayList<>(List.of("bench", "gpu", "-n", "2", "--backend", "host"));
    arguments.addAll(List.of(options.split(" ")));
    var ran = Ran.here(arguments.toArray(String[]::new));
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err()).startsWith(message);
  }
}
