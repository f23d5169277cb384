package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Timing;
import braid.natives.profiling.NvtxRange;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Ranges as a profiler receives them: ranks load a substitute of the NVTX library, newer than any
/// real one, that records the ranges each thread pushes and pops.
class ProfilerRangesTest {
  private static final String COUNTING =
      """
      #define _GNU_SOURCE
      #include <fcntl.h>
      #include <stdio.h>
      #include <stdlib.h>
      #include <unistd.h>
      static void say(const char *what, const char *name) {
        static int file = -1;
        if (file < 0) {
          char path[4096];
          snprintf(path, sizeof path, "%s/%s", getenv("FAKE_NVTX"), getenv("RANK"));
          file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        }
        dprintf(file, "%d %s %s\\n", gettid(), what, name);
      }
      int nvtxRangePushA(const char *name) { say("push", name); return 0; }
      int nvtxRangePop(void) { say("pop", ""); return 0; }
      """;

  @TempDir private Path folder;

  /// Creates a folder that looks like a toolkit newer than any, with that library.
  private Map<String, String> toolkit(String code) throws Exception {
    var libraries = Files.createDirectories(folder.resolve("cuda-99.0/lib64"));
    var source = Files.writeString(folder.resolve("nvtx.c"), code);
    Process compiler;
    try {
      compiler =
          new ProcessBuilder(
                  "gcc",
                  "-shared",
                  "-fPIC",
                  "-o",
                  libraries.resolve("libnvtx3interop.so.1").toString(),
                  source.toString())
              .inheritIO()
              .start();
    } catch (IOException e) {
      assumeTrue(false, "gcc is not installed here: " + e.getMessage());
      throw e;
    }
    assertThat(compiler.waitFor()).isZero();
    return Map.of(
        "CUDA_HOME", folder.resolve("cuda-99.0").toString(), "FAKE_NVTX", folder.toString());
  }

  @Test
  void f6CallsPushTheirNamesAndPopThemAlsoWhereTheyFail() throws Exception {
    for (var ended : ProcessRanks.run(2, toolkit(COUNTING), OnRank.class)) {
      assertThat(ended.exitCode()).as("rank %d: %s", ended.rank(), ended.output()).isZero();
      var pushed = balanced(Files.readAllLines(folder.resolve("" + ended.rank())));
      assertThat(pushed)
          .containsExactly(
              // run, time with two in flight, verify with its run, and the one that fails
              OnRank.PIPELINE,
              OnRank.PIPELINE,
              OnRank.PIPELINE,
              OnRank.PIPELINE.replace("braid ", "braid verify "),
              OnRank.PIPELINE,
              OnRank.PIPELINE + " -> " + OnRank.SECOND,
              "braid all-reduce `x` 6 fp32 (tensor 1.1) to `x` 6 fp32 (tensor 1.1)"
                  + " over copy_engine, one-shot",
              ended.rank() == 0
                  ? OnRank.PIPELINE
                  : "braid barrier of collectives over copy_engine");
    }
  }

  /// Returns names in the order in which they were pushed, after checking that every thread has
  /// popped all of its own.
  private static List<String> balanced(List<String> lines) {
    var names = new ArrayList<String>();
    var open = new HashMap<String, ArrayDeque<String>>();
    for (var line : lines) {
      var words = line.split(" ", 3);
      var stack = open.computeIfAbsent(words[0], _ -> new ArrayDeque<>());
      if (words[1].equals("push")) {
        stack.push(words[2]);
        names.add(words[2]);
      } else {
        stack.pop();
      }
    }
    assertThat(open.values()).allMatch(ArrayDeque::isEmpty);
    return names;
  }

  @Test
  void f6ALibraryWithoutRangesIsAsGoodAsNone() throws Exception {
    var more = new HashMap<>(toolkit("int nvtxMarkA(const char *text) { return 0; }"));
    for (var ended : ProcessRanks.run(1, more, WithoutRanges.class)) {
      assertThat(ended.exitCode()).as(ended.output()).isZero();
      assertThat(ended.output()).contains("libnvtx3interop.so.1 has no nvtxRangePushA");
    }
  }

  /// Code of each rank.
  static final class OnRank {
    static final String PIPELINE = "braid all-gather-gemm m=8 n=4 k=6 bf16, pipelined, 2 splits";
    static final String SECOND = "gemm-reduce-scatter m=8 n=4 k=6 bf16, pipelined, 2 splits";

    private OnRank() {}

    public static void main(String[] none) {
      assertThat(NvtxRange.library().orElseThrow().path().toString()).contains("cuda-99.0");
      try (var world = ProcessGroup.world();
          var gather = pipeline(world, GemmSpec.allGatherGemm(8, 4, 6));
          var scatter = pipeline(world, GemmSpec.gemmReduceScatter(8, 4, 6));
          var x = SymmetricTensor.on(world).shape(6).dtype(DType.FP32).name("x").allocate()) {
        var comm = Collectives.on(world);
        gather.run();
        assertThat(gather.time(2, Timing.BACK_TO_BACK)).hasSize(2);
        gather.verify();
        Chain.of(gather, scatter).run();
        comm.oneShot().allReduce(x, x);
        assertThatThrownBy(world.rank() == 0 ? gather::run : comm::barrier)
            .isInstanceOf(BraidException.class);
      }
    }

    private static Pipeline pipeline(ProcessGroup world, GemmSpec spec) {
      return Pipeline.on(world).gemm(spec.dtype(DType.BF16)).overlap(Overlap.pipelined(2)).build();
    }
  }

  /// Runs with a library that lacks a required function.
  static final class WithoutRanges {
    private WithoutRanges() {}

    public static void main(String[] none) {
      try (var world = ProcessGroup.world()) {
        Collectives.on(world).barrier();
        System.out.println(NvtxRange.missing().orElse("pushed"));
      }
    }
  }
}
