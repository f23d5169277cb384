package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.GemmSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

/// A rank that has joined its group and shares memory, but has multiplied no matrix yet, uses
/// little memory.
class IdleRankTest {
  private static final long MAX_RESIDENT_KIB = 100 * 1024;

  @Test
  void anIdleRankIsSmallAndHasNotLoadedOpenBlas() throws Exception {
    for (var ended : ProcessRanks.run(2, Map.of(), OnRank.class)) {
      assertThat(ended.exitCode()).as(ended.output()).isZero();
      var lines = ended.output().lines().toList();
      assertThat(lines).hasSize(3);
      assertThat(Long.parseLong(lines.get(0))).isBetween(1L, MAX_RESIDENT_KIB);
      assertThat(lines.get(1)).isEqualTo("OpenBLAS: false");
      assertThat(lines.get(2)).isEqualTo("OpenBLAS: true");
    }
  }

  static final class OnRank {
    private OnRank() {}

    public static void main(String[] args) throws IOException {
      try (var world = ProcessGroup.world();
          var x = SymmetricTensor.on(world).shape(1024).allocate()) {
        x.local().fill(1);
        world.barrier();
        System.out.println(residentKib());
        System.out.println("OpenBLAS: " + openBlasIsMapped());
        try (var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(8, 8, 8)).build()) {
          pipe.run();
        }
        System.out.println("OpenBLAS: " + openBlasIsMapped());
      }
    }

    private static long residentKib() throws IOException {
      return Files.readAllLines(Path.of("/proc/self/status")).stream()
          .filter(line -> line.startsWith("VmRSS:"))
          .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
          .findFirst()
          .orElseThrow();
    }

    private static boolean openBlasIsMapped() throws IOException {
      try (var lines = Files.lines(Path.of("/proc/self/maps"))) {
        return lines.anyMatch(line -> line.contains("libopenblas"));
      }
    }
  }
}
