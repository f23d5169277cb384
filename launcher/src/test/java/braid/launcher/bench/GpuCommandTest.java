package braid.launcher.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.bench.AttentionWorkload;
import braid.bench.Form;
import braid.bench.Workload;
import braid.internal.report.value.Caveats;
import braid.launcher.cli.Ran;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

class GpuCommandTest {
  private static final Path PYTHON = Path.of("/usr/bin/python3");
  private static final Workload GATHER = Workload.all(4, true, 1).getFirst();
  private static final Workload BESIDE = Workload.all(4, true, 1).get(3);
  private static final Workload ATTENTION =
      Workload.named(Workload.all(2, true, 1), "attention 16384 tokens, 32 KV heads, forward +")
          .getFirst();

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
    var text = new GpuTable(List.of(GATHER), ours, peers, Map.of()).text();
    // Ratios to the GEMM: 1.1, 1.05 and 1. Hidden: (3 - 1.5) of (3 - 1.5).
    assertThat(text.lines().toList().get(2))
        .isEqualTo(
            "| all-gather GEMM 8192 × 28672 × 8192 | 1.50 | 3.00 | 1.50 | ring | 1.05 (1.00–1.10) | ≤ 1.04 | 0.875 (0.833–0.917) | fused | 100% | – |");
    assertThat(text)
        .contains(
            "| all-gather GEMM 8192 × 28672 × 8192 | PyTorch | fused | 1.80 | 1.20 | 2.40 | 534 | 1.20 | – | – |\n");
  }

  @Test
  void impossibleTimesAreNamed() {
    var ours =
        times(new ArrayList<>(), line(GATHER, "unfused", 2), line(GATHER, "ring, 2 splits", 0.1));
    var peers =
        times(new ArrayList<>(), line(GATHER, "GEMM alone", 0.2), line(GATHER, "fused", 2.1));
    var h200 = Map.of("backend", "cuda", "device", "NVIDIA H200", "link", "NVLink");
    var table = new GpuTable(List.of(GATHER), ours, peers, Map.of());
    assertThat(table.faults(h200))
        .satisfiesExactly(
            ring ->
                assertThat(ring)
                    .startsWith("IMPOSSIBLE_RATE: ring, 2 splits, all-gather GEMM 8192 × 28672")
                    .endsWith("above the H200's 989 TFLOP/s"),
            alone -> assertThat(alone).startsWith("IMPOSSIBLE_RATE: GEMM alone, all-gather GEMM"));
    assertThat(table.faults(Map.of("backend", "simulated"))).isEmpty();
    var host = Map.of("backend", "host", "device", "CPU, 2 cores", "link", "unlimited");
    assertThat(table.faults(host)).hasSize(4);
  }

  @Test
  void attentionIsComparedWithEqualWorkAndWithTheWholeOfPyTorch() {
    var ours =
        times(
            new ArrayList<>(),
            line(ATTENTION, "equal work alone", 8),
            line(ATTENTION, "unfused, replayed", 10),
            line(ATTENTION, "ring, 1 split, replayed", 9.2),
            line(ATTENTION, "ulysses, 2 splits, replayed", 8.4));
    var peers =
        times(
            new ArrayList<>(),
            line(ATTENTION, "equal work alone, cuDNN", 7.5),
            line(ATTENTION, "ring, all-gather, cuDNN", 12),
            line(ATTENTION, "ring, all-to-all, flash", 18));
    var lines = new GpuTable(List.of(ATTENTION), ours, peers, Map.of()).text().lines().toList();
    var name = "| attention 16384 tokens, 32 KV heads, forward + backward | ";
    // Hidden: 10 - 8.4 of 10 - 8.
    assertThat(lines.get(2))
        .isEqualTo(
            name
                + "8.00 | 10.00 | 8.40 | ulysses, 2 splits, replayed | 1.05 (1.05–1.05) | ≤ 1.06 | 0.700 (0.700–0.700) | ring, all-gather, cuDNN | 80% | – |");
    // Products: 7 of 2 × 128 × 32 numbers for each of 16384 × 16385 / 2 pairs, half of them on each
    // of two ranks. Equal work has 11584 tokens.
    assertThat(lines)
        .contains(
            name + "Braid | equal work alone | 8.00 | 8.00 | 8.00 | 481 | – | – | – |",
            name
                + "Braid | ring, 1 split, replayed | 9.20 | 9.20 | 9.20 | 418 | 1.15 | ≤ 1.10 | – |",
            name + "PyTorch | equal work alone, cuDNN | 7.50 | 7.50 | 7.50 | 513 | – | – | – |",
            name
                + "PyTorch | ring, all-gather, cuDNN | 12.00 | 12.00 | 12.00 | 321 | 1.50 | – | – |");
  }

  @Test
  void equalWorkHasAsManyMultiplicationsAsARank() {
    for (int ranks = 2; ranks <= 8; ranks++) {
      for (var workload : Workload.named(Workload.all(ranks, true, 1), "attention")) {
        var attention = (AttentionWorkload) workload;
        assertThat(attention.equalWork().sequence() % 64).isZero();
        // 32 of 8192 / √8 tokens more or less.
        assertThat(attention.flops(attention.alone()) / attention.flops("ring"))
            .isBetween(0.977, 1.023);
      }
    }
  }

  @Test
  void oneRankHasOneFormOfAttention() {
    var workloads = Workload.named(Workload.all(1, true, 1), "attention");
    assertThat(workloads).hasSize(26);
    assertThat(workloads)
        .allSatisfy(
            each -> {
              assertThat(each.forms()).hasSize(1);
              assertThat(each.goal()).isEmpty();
            });
  }

  @ParameterizedTest
  @CsvSource({"2, 0", "3, 0", "4, 1", "5, 0", "8, 2"})
  void attentionHasARingExchangeAndEveryPairOfLevels(int ranks, int groups) {
    assertThat(Workload.named(Workload.all(ranks, true, 1), "attention"))
        .allSatisfy(
            each -> {
              assertThat(each.forms())
                  .extracting(Form::name)
                  .contains("ring, 1 split, neighbor to neighbor, replayed");
              assertThat(each.forms())
                  .filteredOn(form -> form.name().startsWith("two-level with"))
                  .hasSize(groups)
                  .allMatch(each::isPossible);
              assertThat(each.leftOut()).hasSize(groups == 0 ? 1 : 0);
            });
  }

  @Test
  void theLongestSequenceHasFewerIterations() {
    var all = Workload.named(Workload.all(2, true, 1), "attention");
    assertThat(all).filteredOn(each -> each.iterations(40) < 40).hasSize(4);
    assertThat(all)
        .filteredOn(each -> each.name().startsWith("attention 131072 tokens"))
        .allSatisfy(
            each -> {
              assertThat(each.iterations(40)).isEqualTo(4);
              assertThat(each.iterations(15)).isEqualTo(3);
              assertThat(each.iterations(2)).isEqualTo(2);
            });
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
    assertThat(new GpuTable(List.of(BESIDE), ours, peers, Map.of()).text().lines().toList().get(2))
        .isEqualTo(
            "| GEMM beside all-gather 8192 × 8192 × 8192 | 1.00 | 5.00 | 3.00 | bulk | 1.50 (1.50–1.50) | ≤ 1.05 | 0.750 (0.750–0.750) | beside, NCCL | 67% | – |");
  }

  @Test
  void timesOfSharedGpusHavePredictionsAndNoRatios() {
    var ours = times(new ArrayList<>(), line(BESIDE, "unfused", 5), line(BESIDE, "bulk", 3));
    var caption = Caveats.SHARED + "; predicted on h200x8, not calibrated";
    var text =
        new GpuTable(
                List.of(BESIDE),
                ours,
                times(new ArrayList<>()),
                Map.of(BESIDE.name(), Map.of("bulk", 1.75)))
            .unjudged(caption);
    assertThat(text.lines())
        .containsExactly(
            caption,
            "",
            "| workload | form | ms | from | to | predicted |",
            "|---|---|---|---|---|---|",
            "| GEMM beside all-gather 8192 × 8192 × 8192 | unfused | 5.00 | 5.00 | 5.00 | – |",
            "| GEMM beside all-gather 8192 × 8192 × 8192 | bulk | 3.00 | 3.00 | 3.00 | 1.75 |");
  }

  private static Path executable(Path directory, String script) throws IOException {
    var file = Files.writeString(directory.resolve("python"), "#!/bin/sh\n" + script);
    assertThat(file.toFile().setExecutable(true)).isTrue();
    return file;
  }

  private static PyTorch pytorch(Path python, Path directory) {
    return new PyTorch(python, 2, List.of(ATTENTION, BESIDE), 30, directory);
  }

  @Test
  void anInterpreterWithoutPyTorchIsRefusedInOneLine(@TempDir Path directory) throws Exception {
    assumeTrue(Files.isExecutable(PYTHON), PYTHON + " is not installed");
    // Without packages of its site.
    var python = executable(directory, "exec %s -I -S \"$@\"\n".formatted(PYTHON));
    assertThat(pytorch(python, directory).refusal())
        .hasValue(python + ": PyTorch 2.7 or newer is needed: No module named 'torch'");
    assertThat(pytorch(directory.resolve("none"), directory).refusal().orElseThrow())
        .contains("Cannot run program", "none")
        .hasLineCount(1);
    assertThat(pytorch(executable(directory, "exit 0\n"), directory).refusal()).isEmpty();
  }

  @Test
  void pyTorchGetsSizesAndIterations(@TempDir Path directory) throws Exception {
    var python =
        executable(
            directory,
            "printf '%s\\n' \"$@\"\nprintf 'bench\\tattention\\tring, cuDNN\\t1.25\\n'\n");
    var printed = new ArrayList<String>();
    var times = new GpuTimes(printed::add);
    pytorch(python, directory).round(times);
    assertThat(times.of("attention")).containsEntry("ring, cuDNN", List.of(1.25, 1.25));
    assertThat(printed)
        .contains("--nproc-per-node", "2", "--zero")
        .contains(
            "[{\"name\":\"attention 16384 tokens, 32 KV heads, forward + backward\",\"iterations\":30,\"warmUp\":10,\"pattern\":\"attention\",\"tokens\":16384,\"equal\":11584,\"heads\":32,\"kvHeads\":32,\"headSize\":128,\"backward\":true},"
                + "{\"name\":\"GEMM beside all-gather 8192 × 8192 × 8192\",\"iterations\":30,\"warmUp\":10,\"pattern\":\"gemm-beside-all-gather\",\"m\":8192,\"n\":8192,\"k\":8192,\"beside\":134217728}]");
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
    var workloads = Workload.all(2, true, 64);
    var predicted = GpuTable.predicted(workloads, Machine.h100x8());
    assertThat(predicted).hasSameSizeAs(workloads);
    for (var workload : workloads) {
      var forms = Objects.requireNonNull(predicted.get(workload.name())).values();
      assertThat(forms).allMatch(time -> time > 0);
      assertThat(forms.isEmpty()).as(workload.name()).isEqualTo(workload.problems().isEmpty());
    }
  }

  @Test
  void librariesRunGemmsInEveryFormThatTheyHave() {
    assertThat(libraries("all-gather GEMM 64 "))
        .contains("unfused, over nccl_kernels", "pipelined, 4 splits, over nccl_symmetric")
        .contains("unfused, over nccl_copy_engine, replayed");
    assertThat(libraries("GEMM reduce-scatter 64 "))
        .contains("unfused, over nccl_kernels, replayed")
        .noneMatch(form -> form.contains("nccl_symmetric") || form.contains("nccl_copy_engine"));
    assertThat(libraries("GEMM all-reduce 1 × 8192"))
        .contains("unfused, over nccl_symmetric")
        .noneMatch(form -> form.contains("pipelined"));
    assertThat(libraries("GEMM beside all-gather")).contains("bulk, over nccl_kernels");
    var onHost = Workload.named(Workload.all(2, false, 1), "all-gather GEMM 64 ").getFirst();
    assertThat(onHost.forms()).extracting(Form::name).noneMatch(form -> form.contains("nccl"));
  }

  /// Returns the possible forms over libraries of the first workload of that name, on 2 GPUs.
  private static List<String> libraries(String name) {
    var workload = Workload.named(Workload.all(2, true, 1), name).getFirst();
    return workload.forms().stream()
        .filter(workload::isPossible)
        .map(Form::name)
        .filter(form -> form.contains("nccl"))
        .toList();
  }

  @Test
  void aLibraryIsARivalOfStandaloneCollectives() {
    var gathered =
        Workload.named(Workload.all(2, true, 1), "standalone all-gather 64 KiB").getFirst();
    assertThat(gathered.forms())
        .extracting(Form::name)
        .containsExactly(
            "copy engine",
            "workers, 16 per rank",
            "one kernel",
            "pushing",
            "nccl kernels",
            "nccl copy engine",
            "nccl symmetric");
    var ours =
        times(
            new ArrayList<>(),
            line(gathered, "one kernel", 0.06),
            line(gathered, "pushing", 0.09),
            line(gathered, "nccl symmetric", 0.05));
    var peers = times(new ArrayList<>(), line(gathered, "NCCL, graph", 0.12));
    var table = new GpuTable(List.of(gathered), ours, peers, Map.of());
    assertThat(table.text().lines().toList().get(2))
        .isEqualTo(
            "| standalone all-gather 64 KiB, 8 times | – | – | 0.060 | one kernel | – | – | 1.20 (1.20–1.20) | nccl symmetric, by Braid | – | – |");
    assertThat(table.faults(Map.of("backend", "cuda", "device", "NVIDIA H200", "link", "NVLink")))
        .isEmpty();
  }

  @Test
  void sumsHaveBothAlgorithmsAndEachSizeOnce() {
    var all = Workload.named(Workload.all(4, true, 1), "standalone");
    assertThat(all).hasSize(21).extracting(Workload::name).doesNotHaveDuplicates();
    assertThat(Workload.named(all, "all-reduce 128 MiB").getFirst().forms())
        .extracting(Form::name)
        .containsExactly(
            "copy engine, one-shot",
            "copy engine, two-shot",
            "workers, 16 per rank, one-shot",
            "workers, 16 per rank, two-shot",
            "one kernel, one-shot",
            "one kernel, two-shot",
            "nccl kernels",
            "nccl symmetric");
    assertThat(Workload.named(Workload.all(3, false, 256), "standalone"))
        .extracting(Workload::name)
        .doesNotHaveDuplicates();
  }

  @Test
  void standaloneCollectivesRunOnTheHost() {
    var ran =
        Ran.here(
            "bench",
            "gpu",
            "-n",
            "3",
            "--backend",
            "host",
            "--divide",
            "256",
            "--only",
            "standalone",
            "--iterations",
            "2",
            "--rounds",
            "1");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out())
        .contains("| standalone reduce-scatter ", "| Braid | workers, 1 per rank, two-shot | ")
        .doesNotContain("nccl");
  }

  @Test
  void theCommandRunsOnTheHost(@TempDir Path directory) throws Exception {
    var file = directory.resolve("table.md");
    var ran =
        Ran.here(small(1, file, "bench", "gpu", "--machine", "h100x8").toArray(String[]::new));
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.err()).contains("only Braid is timed: the backend is host", "round 1 of 1");
    assertThat(ran.out())
        .contains("| GEMM all-reduce 4 × 64 × 224 | – | ", "| Braid | unfused")
        .doesNotContain("PyTorch | fused");
    assertThat(Files.readString(file)).isEqualTo(ran.out());
  }

  /// Returns the options of a small benchmark on the host, after some others.
  private static Stream<String> small(int rounds, Path file, String... first) {
    return Stream.concat(
        Stream.of(first),
        Stream.of(
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
            Integer.toString(rounds),
            "--markdown",
            file.toString()));
  }

  /// A process that ends in a later round leaves the rounds before it.
  @Test
  void theTablesAreWrittenAfterEachRound(@TempDir Path directory) {
    var file = directory.resolve("table.md");
    var early = new AtomicReference<>("");
    var err =
        new StringWriter() {
          @Override
          public void write(String text, int offset, int length) {
            if (text.contains("round 2 of 2")) {
              early.set(read(file));
            }
            super.write(text, offset, length);
          }
        };
    var command = new CommandLine(new GpuCommand());
    command.setErr(new PrintWriter(err)).setOut(new PrintWriter(new StringWriter()));
    int exit = command.execute(small(2, file).toArray(String[]::new));
    assertThat(exit).as(err.toString()).isZero();
    assertThat(early.get()).contains("| GEMM all-reduce 4 × 64 × 224 | Braid | unfused");
    assertThat(read(file)).isNotEqualTo(early.get());
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Two ranks divide each of 16 sequences, some ranks hold whole ones, and the gradients of one
  /// row have equal bits.
  @Test
  void packedDivisionsAndDeterministicGradientsRunOnTheHost() {
    var names =
        List.of(
            "attention 128 tokens, 8 KV heads, forward + deterministic backward",
            "attention 128 tokens in 16 sequences, 8 KV heads, per-sequence, forward only",
            "attention 128 tokens in 16 sequences, 8 KV heads, by-work, forward + backward",
            "attention 128 tokens in 16 sequences, 8 KV heads, whole-sequences, forward + backward");
    var ran =
        Ran.here(
            "bench",
            "gpu",
            "-n",
            "2",
            "--backend",
            "host",
            "--divide",
            "256",
            "--only",
            String.join(";", names),
            "--iterations",
            "1",
            "--rounds",
            "1");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    for (var name : names) {
      var forms =
          ran.out()
              .lines()
              .filter(line -> line.startsWith("| %s | Braid | ".formatted(name)))
              .map(line -> line.split(" \\| ", -1)[2]);
      assertThat(forms).as(ran.err()).contains("equal work alone", "unfused, replayed");
    }
  }

  /// Three ranks cannot divide 8 heads of key and value.
  @Test
  void attentionRunsOnTheHost() {
    var ran =
        Ran.here(
            "bench",
            "gpu",
            "-n",
            "3",
            "--backend",
            "host",
            "--divide",
            "256",
            "--only",
            "attention 32 tokens, 8 KV heads",
            "--iterations",
            "2",
            "--rounds",
            "2");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    for (var passes : List.of("forward only", "forward + backward")) {
      var name = "attention 32 tokens, 8 KV heads, " + passes;
      assertThat(ran.err())
          .containsOnlyOnce(
              name
                  + " leaves out two-level: it needs two or more groups of two or more ranks but there are 3; try 4 ranks");
      for (var splits : List.of("1 split", "2 splits")) {
        assertThat(ran.err())
            .containsOnlyOnce(
                "%s leaves out ulysses, %s, replayed: ulysses divides heads among 3 ranks"
                    .formatted(name, splits));
      }
      assertThat(
              ran.out()
                  .lines()
                  .filter(line -> line.startsWith("| %s | Braid | ".formatted(name)))
                  .map(line -> line.split(" \\| ", -1)[2]))
          .containsExactly(
              "equal work alone",
              "unfused, replayed",
              "ring, 1 split, replayed",
              "ring, 1 split, neighbor to neighbor, replayed",
              "all-gather-kv, 1 split, replayed");
    }
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
  void badOptionsAreRefused(String options, String message) {
    var arguments = new ArrayList<>(List.of("bench", "gpu", "-n", "2", "--backend", "host"));
    arguments.addAll(List.of(options.split(" ")));
    var ran = Ran.here(arguments.toArray(String[]::new));
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err()).startsWith(message);
  }
}
