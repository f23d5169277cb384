package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.machine.BackendChoice;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/// Variables of ranks: on GPUs they leave the daemon of MPS aside, whose clients have too few
/// hardware queues for streams that wait for signals.
class RankEnvironmentTest {
  private static final String MPS = "CUDA_MPS_PIPE_DIRECTORY";

  private static Map<String, String> ofRanks(BackendChoice backend, Map<String, String> given) {
    var options = new SessionOptions(4, backend, Optional.empty(), Path.of(""));
    return RankCluster.environment(options, 1234, given);
  }

  private static BackendChoice shared() {
    return new BackendChoice(BackendKind.CUDA, "as the test says", List.of("a GPU"));
  }

  @Test
  void ranksOnGpusLeaveMpsAside() {
    assertThat(ofRanks(shared(), Map.of())).containsEntry(MPS, "/nonexistent");
    assertThat(ofRanks(shared(), Map.of(MPS, "/tmp/mps", "CUDA_DEVICE_MAX_CONNECTIONS", " ")))
        .containsEntry(MPS, "/nonexistent");
    assertThat(ofRanks(new BackendChoice(BackendKind.HOST, "as the test says"), Map.of()))
        .doesNotContainKey(MPS);
  }

  @Test
  void ranksWithChosenQueuesUseMps() {
    var given = Map.of(MPS, "/tmp/mps", "CUDA_DEVICE_MAX_CONNECTIONS", "24");
    assertThat(ofRanks(shared(), given)).doesNotContainKey(MPS);
  }
}
