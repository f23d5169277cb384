package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.Decision;
import braid.evidence.Decisions;
import braid.evidence.Study;
import braid.launcher.experiment.Experiments;
import braid.launcher.notebook.Notebook;
import braid.model.GemmSpec;
import braid.model.Overlap;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TuneTest {
  @TempDir Path directory;

  private Ran braid(String... arguments) throws IOException, InterruptedException {
    var environment = Map.of("BRAID_CACHE", directory.resolve("cache").toString());
    return Ran.apart(directory, environment, (_, _) -> {}, arguments);
  }

  private Decisions decisions() {
    return Decisions.in(directory.resolve("cache").resolve(Decisions.FOLDER));
  }

  @Test
  void anOperationIsTunedByANotebookThatIsSaved() throws Exception {
    var ran =
        braid(
            "tune",
            "gemm-reduce-scatter",
            "48",
            "16",
            "8",
            "--dtype",
            "fp32",
            "-n",
            "2",
            "--budget",
            "1s",
            "--starts",
            "2",
            "--report",
            "tuned.html");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out()).contains("found   GEMM → reduce-scatter, 48×16×8 fp32, 2 ranks");
    assertThat(ran.err()).contains(": found GEMM → reduce-scatter, 48×16×8 fp32, 2 ranks");
    // On a noisy machine two searches may have no finalist in common.
    assertThat(ran.out() + ran.err())
        .containsPattern("\\nstarts  .*; fastest in 2 starts: |note: each start decides by itself");
    var run = new Experiments(directory.resolve("runs")).find(Experiments.LATEST).directory();
    var saved = Notebook.read(run.resolve("tune-gemm-reduce-scatter-m-48-n-16-k-8-fp32.out.ipynb"));
    assertThat(saved.codeCells().getFirst().source())
        .isEqualTo(
            """
            var spec = GemmSpec.gemmReduceScatter(48, 16, 8).dtype(DType.FP32);
            Tuner.on(world).gemm(spec).search().budget(Duration.ofSeconds(1)).decide()""");
    assertThat(saved.toJson()).contains("searched 125 configurations", "take `");
    assertThat(directory.resolve("tuned.html")).exists();
    // An undecided result is not kept.
    var kept = decisions().all();
    assertThat(kept).hasSizeLessThanOrEqualTo(1);
    kept.forEach(
        each -> assertThat(ran.out()).contains("take    `%s` for ".formatted(each.tuning())));
    // It left nothing beside the run and the report.
    assertThat(directory.toFile().list()).containsExactlyInAnyOrder("cache", "runs", "tuned.html");
  }

  @Test
  void keptDecisionsAreListedAndForgotten() throws Exception {
    for (int m : List.of(64, 128)) {
      var setting = new LinkedHashMap<String, String>();
      setting.put(Decision.PROBLEM, GemmSpec.allGatherGemm(m, 16, 8).toString());
      decisions().keep(new Decision(setting, new LinkedHashMap<>(), Instant.now(), study()));
    }
    var listed = braid("tune", "--kept");
    assertThat(listed.exitCode()).as(listed.err()).isZero();
    assertThat(listed.out()).containsSubsequence("m=128 n=16", "pipelined, 2 splits", "m=64 n=16");
    var forgot = braid("tune", "--forget", "m=64", "--kept");
    assertThat(forgot.out())
        .startsWith("forgot  all-gather-gemm m=64 n=16 k=8 fp32\n")
        .contains("m=128 n=16");
    assertThat(decisions().all()).hasSize(1);
    var again = braid("tune", "--forget", "m=64");
    assertThat(again.exitCode()).isEqualTo(2);
    assertThat(again.err())
        .isEqualTo(
            "braid: --forget must be in the problem of a kept decision but no problem has `m=64`; braid tune --kept lists them\n");
  }

  private static Study<Overlap> study() {
    return new Study<>(
        new LinkedHashMap<>(GemmSpec.allGatherGemm(64, 16, 8).columns()),
        2,
        1,
        List.of(900L, 901L, 900L, 901L, 900L, 901L),
        List.of(901L, 900L, 901L, 900L, 901L, 900L),
        List.of(
            new Study.Trial<>(Overlap.pipelined(2), List.of(700L, 701L, 700L, 701L, 700L, 701L))),
        Overlap.unfused());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          '' | tune needs an operation: all-gather-gemm,
          all-reduce 1 2 3 | the operation must be one of all-gather-gemm, gemm-reduce-scatter, gemm-all-reduce, gemm-beside-all-gather, gemm-beside-reduce-scatter, attention but was `all-reduce`; did you mean gemm-all-reduce?
          all-gather-gemm 8 9 | all-gather-gemm must have the sizes M N K but has 8 9; for example braid tune all-gather-gemm 8192 28672 8192
          all-gather-gemm 8 9 many | a size must be a whole number up to 2147483647 but was `many`; try 8192
          all-gather-gemm 8 9 0 | k must be 1 or more
          gemm-beside-all-gather 8 9 8 | gemm-beside-all-gather must have the sizes M N K ELEMENTS but has 8 9 8; for example braid tune gemm-beside-all-gather 8192 28672 8192 1048576
          all-gather-gemm 8 9 8 --causal | --causal is of attention but the operation is all-gather-gemm; leave it out
          allgather-gemm 8 9 8 | the operation must be one of all-gather-gemm, gemm-reduce-scatter, gemm-all-reduce, gemm-beside-all-gather, gemm-beside-reduce-scatter, attention but was `allgather-gemm`; did you mean all-gather-gemm?
          all-gather-gemm 8 9 8 --dtype int | dtype must be one of
          all-gather-gemm 8 9 8 --dtype float32 | dtype must be one of fp32, tf32, bf16, fp16, fp8_e4m3, fp8_e5m2 but was float32; did you mean fp32?
          all-gather-gemm 8 9 8 --dtype bfloat16 | dtype must be one of fp32, tf32, bf16, fp16, fp8_e4m3, fp8_e5m2 but was bfloat16; did you mean bf16?
          attention 64 | attention needs the number of its heads; for example braid tune attention 32768 --heads 32 --kv-heads 8
          attention 64 --heads 4 --kv-heads 3 | kvHeads must
          attention 64 --heads 4 --fused kvq | --fused must be kv, qkv or none but was `kvq`; try qkv
          attention 64 --heads 4 --exchanged fp8_e5m2 | key and value are exchanged in the attention's bf16 or in fp8_e4m3 but exchanged was fp8_e5m2; try exchanged(FP8_E4M3), or leave it out
          all-gather-gemm 8 9 8 --exchanged fp8_e4m3 | --exchanged is of attention but the operation is all-gather-gemm; leave it out
          attention 64 --heads 4 --keys 0 | keys must be 1 or more but was 0
          attention 64 --heads 4 --keys 32 --causal | causal attention aligns the last query with the last key, so each sequence must have as many keys as queries or more, but sequence 0 has 64 queries and 32 keys; leave causal() out
          attention 64 --heads 4 --keys 32 --fused qkv | fused qkv has a row for each token with query, key and value, but queries and keys differ in number: 64 queries and 32 keys; take fused(KV)
          all-gather-gemm 8 9 8 --keys 9 | --keys is of attention but the operation is all-gather-gemm; leave it out
          all-gather-gemm 8 9 8 --fused kv | --fused is of attention but the operation is all-gather-gemm; leave it out
          all-gather-gemm 8 9 8 -n 1 | tune needs 2 or more ranks but has 1: one rank has nothing to communicate; try -n 4 --backend host
          all-gather-gemm 8 9 8 -n 2 --budget soon | --budget must be
          all-gather-gemm 8 9 8 --tokens 9 | --tp, --cp, --tokens and --export need --model but it is missing; name the model's config.json
          all-gather-gemm 8 9 8 --model config.json | --model takes no operation but all-gather-gemm was given; leave one of them out
          --model config.json | --model needs the tokens of a sequence; for example --tokens 8192
          --model config.json --tokens 9 --tp 3 -n 2 | --tp must be the number of ranks that run, 2, but was 3; try -n 3
          --model missing.json --tokens 64 -n 2 | missing.json must be a readable text file but was not
          --model config.json --tokens 64 --heads 4 -n 2 | --heads is of an operation but --model was given; leave it out
          --kept --dtype bf16 | --dtype is of an operation but --kept was given; leave it out
          --kept --model config.json | --kept and --forget run nothing but --model was given; leave one of them out
          all-gather-gemm 8 9 8 --kept | --kept takes no operation but all-gather-gemm was given; leave one of them out
          """)
  void aMistakeIsOneLineAndRunsNothing(String arguments, String message) {
    var words = ("tune " + arguments).strip().split(" ");
    var ran = Ran.here(words);
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err().lines()).hasSize(1);
    assertThat(ran.err()).startsWith("braid: ").contains(message);
  }
}
