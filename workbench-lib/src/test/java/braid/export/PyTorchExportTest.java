package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Transport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class PyTorchExportTest {
  /// Runs the program on ranks that are threads, with few iterations.
  private static final String PROGRAM =
      """
      import fake_torch
      fake_torch.install(4)
      import exported
      exported.ITERATIONS = 1
      CHANGE
      print(fake_torch.run(exported.main, 4))
      """;

  private static final String ALL_FINE = "['ok', 'ok', 'ok', 'ok']";

  @TempDir Path directory;

  private static GemmSpec gather() {
    return GemmSpec.allGatherGemm(24, 8, 5).dtype(DType.BF16);
  }

  private static GemmSpec scatter() {
    return GemmSpec.gemmReduceScatter(24, 7, 8).dtype(DType.BF16);
  }

  private static TunedGemm decision(GemmSpec spec, Overlap tuning) {
    return MegatronExportTest.decision(spec, tuning);
  }

  private static Stream<TunedGemm> decisions() {
    return Stream.of(gather(), gather().transposedWeight(), scatter(), scatter().transposedWeight())
        .flatMap(
            spec ->
                Stream.of(
                        Overlap.direct(),
                        Overlap.direct(4).order(ChunkOrder.PREVIOUS_FIRST).streams(2),
                        Overlap.direct(2).order(ChunkOrder.RANK_ORDER),
                        Overlap.pipelined(1).priority(Priority.EQUAL),
                        Overlap.pipelined(5).streams(3).priority(Priority.GEMM),
                        Overlap.pipelined(2).boundaries(0, 1, 6))
                    .map(tuning -> decision(spec, tuning)));
  }

  private String run(Export export, String change) throws IOException, InterruptedException {
    try (var fake = PyTorchExportTest.class.getResourceAsStream("/braid/export/fake_torch.py")) {
      Files.copy(Objects.requireNonNull(fake), directory.resolve("fake_torch.py"));
    }
    return Python.run(directory, export.text(), PROGRAM.replace("CHANGE", change));
  }

  @ParameterizedTest
  @MethodSource("decisions")
  void f12TheProgramFindsItsResultRight(TunedGemm decision)
      throws IOException, InterruptedException {
    var export = PyTorchExport.program(decision);
    assertThat(run(export, ""))
        .contains("the results of all ranks are equal to the unfused code's")
        .contains("overlapped 250.0 us here, 812.3 us by Braid")
        .contains("unfused 250.0 us here, 1100.0 us by Braid")
        .contains(ALL_FINE);
    assertThat(export.text())
        .startsWith("# measured with Braid 0.1.0 on 4 x NVIDIA H200, NVLink 4, driver 580.82,")
        .doesNotContain("%(");
  }

  /// `Peers.torch` runs the program under another name, and then its steps.
  @Test
  void theProgramHasStepsForPeers() throws IOException, InterruptedException {
    var printed =
        run(
            PyTorchExport.program(decision(gather(), Overlap.direct(2))),
            """
            import runpy
            def peer():
                steps = runpy.run_path("exported.py", run_name="braid_peer")["steps"]
                print([name for name in steps if steps[name]() is None])
            exported.main = peer
            """);
    assertThat(printed).contains("['overlapped', 'unfused']").contains(ALL_FINE);
  }

  /// A program that leaves out a chunk, or writes it elsewhere, does not say that it is right.
  @Test
  void theProgramFindsAMistake() throws IOException, InterruptedException {
    var mistakes =
        List.of(
            "exported.CHUNKS = exported.CHUNKS[:-1]",
            "own = exported.rows_of\nexported.rows_of = lambda r, s, e: own(r, 0, e - s)");
    for (var spec : List.of(gather(), scatter())) {
      for (var mistake : mistakes) {
        var printed = run(PyTorchExport.program(decision(spec, Overlap.direct(3))), mistake);
        assertThat(printed).contains("ranks are wrong").doesNotContain("are equal");
        Files.delete(directory.resolve("fake_torch.py"));
      }
    }
  }

  @Test
  void theProgramCompiles() throws IOException, InterruptedException {
    Files.writeString(
        directory.resolve("layer.py"),
        PyTorchExport.program(decision(scatter(), Overlap.pipelined(4))).text());
    assertThat(Python.run(directory, "-m", "py_compile", "layer.py")).isEmpty();
  }

  @Test
  void theChunksAreTheMeasuredOnes() {
    assertThat(PyTorchExport.program(decision(gather(), Overlap.direct(4))).text())
        .contains("\nCHUNKS = [(0, 2), (2, 4), (4, 5), (5, 6)]\n");
    assertThat(
            PyTorchExport.program(decision(gather(), Overlap.direct().boundaries(0, 1, 6))).text())
        .contains("\nCHUNKS = [(0, 1), (1, 6)]\n");
  }

  @Test
  void optionsWithoutCounterpartAreListed() {
    var tuning =
        Overlap.direct().over(Transport.WORKERS).workers(8).replay().outputInSymmetricMemory();
    assertThat(PyTorchExport.program(decision(scatter(), tuning)).omitted())
        .anyMatch(each -> each.startsWith("8 workers: PyTorch copies between GPUs by copy engines"))
        .anyMatch(each -> each.startsWith("replayed: "))
        .anyMatch(each -> each.startsWith("output in symmetric memory: "))
        .anyMatch(each -> each.startsWith("sums of pieces: "));
  }

  @Test
  void problemsThatTheProgramDoesNotHaveAreRefused() {
    refuses(gather(), Overlap.ring(), "must be pipelined or direct but was ring;");
    refuses(gather(), Overlap.unfused(), "must be pipelined or direct but was unfused;");
    refuses(
        GemmSpec.gemmAllReduce(24, 8, 8).dtype(DType.BF16),
        Overlap.direct(),
        "must be all-gather-gemm or gemm-reduce-scatter but was gemm-all-reduce;");
    refuses(gather().bias().gelu(), Overlap.direct(), "has no bias, gelu; measure");
    refuses(gather().dtype(DType.FP8_E4M3), Overlap.direct(), "needs one type but");
    refuses(
        gather().output(DType.FP32), Overlap.direct(), "needs one type but the problem is `all");
    refuses(gather().dtype(DType.TF32), Overlap.direct(), "must be fp32 or bf16 or fp16 but was");
    refuses(GemmSpec.allGatherGemm(25, 8, 5), Overlap.direct(), "m must be divisible by 4 ranks");
    refuses(GemmSpec.allGatherGemm(24, 9, 5), Overlap.direct(), "n must be divisible by 4 ranks");
    refuses(GemmSpec.gemmReduceScatter(24, 9, 5), Overlap.direct(), "but was 5; measure k = 4");
    refuses(gather(), Overlap.direct(7), "the chunks of a part of 6 rows must have a row each");
    refuses(gather(), Overlap.direct().boundaries(0, 3, 7), "the chunks of a part of 6 rows must");
  }

  private static void refuses(GemmSpec spec, Overlap tuning, String message) {
    assertThatThrownBy(() -> PyTorchExport.program(decision(spec, tuning)))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .message()
        .hasLineCount(1);
  }
}
