package braid.launcher.machine;

import static org.assertj.core.api.Assertions.assertThat;

import braid.natives.nvml.GpuFacts;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GpusTest {
  private static final long GIB = 1L << 30;

  /// Returns that number of identical GPUs.
  static Gpus gpus(int count) {
    var all =
        IntStream.range(0, count)
            .mapToObj(
                i -> new GpuFacts(i, "NVIDIA H200", "GPU-" + i + "a", 140 * GIB, GIB, 9, 0, 18))
            .toList();
    return new Gpus(all, count == 0 ? "no /dev/nvidia0" : "", "580.95.05, CUDA 13.0");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          0,1,2,3   | 0 1 2 3
          3,1       | 3 1
          2, 7, 1   | 2
          1,1       | 1
          GPU-2,0   | 2 0
          -1        | ''
          ''        | ''
          MIG-1     | ''
          """)
  void gpusAreTheOnesThatCudaSees(String visible, String indices) {
    var seen = gpus(4).visibleTo(Optional.of(visible));
    assertThat(seen.all().stream().map(gpu -> "" + gpu.index()).toList())
        .isEqualTo(indices.isEmpty() ? List.of() : List.of(indices.split(" ")));
    assertThat(seen.missing())
        .isEqualTo(
            indices.isEmpty() ? "CUDA_VISIBLE_DEVICES is \"" + visible + "\" and hides all 4" : "");
  }

  @Test
  void allGpusAreVisibleByDefault() {
    assertThat(gpus(4).visibleTo(Optional.empty())).isEqualTo(gpus(4));
    assertThat(gpus(0).visibleTo(Optional.of("0")).missing()).isEqualTo("no /dev/nvidia0");
  }

  @Test
  void gpusAreCountedByName() {
    assertThat(gpus(2).words()).isEqualTo("2 x NVIDIA H200");
    assertThat(gpus(0).words()).isEqualTo("none: no /dev/nvidia0");
  }

  @Test
  void thisMachineHasGpusOrAReason() {
    var here = Gpus.here(Optional.empty());
    assertThat(here.all().isEmpty()).isEqualTo(!here.missing().isEmpty());
    assertThat(here.missing()).hasLineCount(here.all().isEmpty() ? 1 : 0);
  }
}
