package braid.launcher.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BackendKind;
import braid.model.BraidException;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BackendChoiceTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          auto | 4 | 0 | host (no GPU: no /dev/nvidia0)
          auto | 4 | 2 | host (4 ranks but only 2 x NVIDIA H200; --share-gpus runs them there)
          auto | 2 | 2 | cuda (one rank on each of 2 x NVIDIA H200)
          auto | 1 | 4 | cuda (1 of 4 x NVIDIA H200, one rank each)
          cuda | 4 | 4 | cuda (one rank on each of 4 x NVIDIA H200)
          host | 2 | 2 | host (set by --backend)
          """)
  void theChoiceIsPrintedWithItsReason(String wish, int ranks, int gpus, String choice) {
    var chosen =
        BackendChoice.of(
            BackendKind.parse(wish, "--backend"),
            "--backend",
            ranks,
            GpusTest.gpus(gpus),
            Optional.empty());
    assertThat(chosen).hasToString(choice);
    assertThat(chosen.isCuda()).isEqualTo(choice.startsWith("cuda"));
    assertThat(chosen.sharesGpus()).isFalse();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          auto | 4 | 1 | cuda (4 ranks share 1 x NVIDIA H200) | true
          cuda | 3 | 2 | cuda (3 ranks share 2 x NVIDIA H200) | true
          cuda | 2 | 2 | cuda (one rank on each of 2 x NVIDIA H200) | false
          """)
  void ranksShareGpusOnRequest(String wish, int ranks, int gpus, String choice, boolean shares) {
    var chosen =
        BackendChoice.of(
            BackendKind.parse(wish, "--backend"),
            "--backend",
            ranks,
            GpusTest.gpus(gpus),
            Optional.of("--share-gpus"));
    assertThat(chosen).hasToString(choice);
    assertThat(chosen.sharesGpus()).isEqualTo(shares);
    for (int rank = 0; rank < ranks; rank++) {
      assertThat(chosen.device(rank)).startsWith("GPU " + rank % gpus + ":");
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          host | 1 | --share-gpus needs GPUs but --backend is host; leave one of them out
          auto | 0 | --share-gpus needs a GPU but none is available (no /dev/nvidia0); leave it out, or try --backend host
          """)
  void sharingWithoutGpusIsRefused(String wish, int gpus, String message) {
    var requested = BackendKind.parse(wish, "--backend");
    var found = GpusTest.gpus(gpus);
    var sharing = Optional.of("--share-gpus");
    assertThatThrownBy(() -> BackendChoice.of(requested, "--backend", 4, found, sharing))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          cuda | 1 | 0 | BRAID_BACKEND cuda needs a GPU but none is available (no /dev/nvidia0); try host
          cuda | 3 | 2 | BRAID_BACKEND cuda runs one rank per GPU: -n must be 1..2 but was 3; try -n 2, --share-gpus, or --backend host
          gpu  | 1 | 2 | BRAID_BACKEND must be one of auto, host, cuda but was gpu; try host
          """)
  void anUnavailableNamedBackendIsRefused(String wish, int ranks, int gpus, String message) {
    assertThatThrownBy(
            () -> {
              var requested = BackendKind.parse(wish, "BRAID_BACKEND");
              BackendChoice.of(
                  requested, "BRAID_BACKEND", ranks, GpusTest.gpus(gpus), Optional.empty());
            })
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }
}
