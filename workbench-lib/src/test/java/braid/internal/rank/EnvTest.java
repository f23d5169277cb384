package braid.internal.rank;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Place;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EnvTest {
  private static final Map<String, String> COMPLETE =
      Map.of(
          "RANK", "2",
          "WORLD_SIZE", "4",
          "LOCAL_RANK", "0",
          "LOCAL_WORLD_SIZE", "2",
          "MASTER_PORT", "4711",
          "BRAID_TOKEN", "secret");

  @Test
  void defaultsToAWorldOfOneRank() {
    var env = Env.read(Map.of());
    assertThat(env.world()).isEqualTo(new Place(0, 1));
    assertThat(env.store()).isEmpty();
    assertThat(env.link()).isEqualTo(Link.DEFAULT);
    assertThat(env.memory()).isEqualTo(MemoryKind.AUTO);
    assertThat(env.timeout()).isEqualTo(Duration.ofMinutes(5));
    assertThat(env.backend()).isEqualTo(BackendKind.AUTO);
    assertThat(env.bulkCopies()).isTrue();
    assertThat(env.attention()).isEqualTo(AttentionEngine.AUTO);
    assertThat(env.cache())
        .isEqualTo(Path.of(System.getProperty("user.home")).resolve(".cache/braid"));
  }

  @ParameterizedTest
  @CsvSource({"auto,AUTO", "host,HOST", "cuda,CUDA"})
  void everyBackendIsRead(String name, BackendKind backend) {
    assertThat(Env.read(Map.of("BRAID_BACKEND", name)).backend()).isEqualTo(backend);
  }

  @Test
  void theCacheFolderIsRead() {
    assertThat(Env.read(Map.of("BRAID_CACHE", "/var/cache/braid")).cache())
        .isEqualTo(Path.of("/var/cache/braid"));
    assertThat(Env.read(Map.of("BRAID_CACHE", "kernels")).cache())
        .isEqualTo(Path.of("kernels").toAbsolutePath());
  }

  @Test
  void theModeOfWorkerCopiesIsRead() {
    assertThat(Env.read(Map.of("BRAID_WORKER_COPIES", "bulk")).bulkCopies()).isTrue();
    assertThat(Env.read(Map.of("BRAID_WORKER_COPIES", "loads")).bulkCopies()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({"1, 0, 4", "2, 0, 2", "3, 2, 2", "4, 2, 1"})
  void ranksAreDealtOverTheGpusThatTheyShare(int gpus, int gpu, int ranksPerGpu) {
    var variables = new HashMap<>(COMPLETE);
    variables.putAll(Map.of("LOCAL_RANK", "2", "LOCAL_WORLD_SIZE", "4"));
    var alone = Env.read(variables);
    assertThat(alone.gpu(gpus)).isEqualTo(2);
    assertThat(alone.ranksPerGpu(gpus)).isEqualTo(1);
    variables.put("BRAID_SHARE_GPUS", "1");
    var sharing = Env.read(variables);
    assertThat(sharing.gpu(gpus)).isEqualTo(gpu);
    assertThat(sharing.ranksPerGpu(gpus)).isEqualTo(ranksPerGpu);
  }

  @ParameterizedTest
  @CsvSource({"auto,AUTO", "cudnn,CUDNN", "own,OWN"})
  void everyAttentionEngineIsRead(String name, AttentionEngine engine) {
    assertThat(Env.read(Map.of("BRAID_ATTENTION", name)).attention()).isEqualTo(engine);
  }

  @Test
  void theContractOfTorchrunIsRead() {
    var env = Env.read(COMPLETE);
    assertThat(env.world()).isEqualTo(new Place(2, 4));
    assertThat(env.local()).isEqualTo(new Place(0, 2));
    assertThat(env.store()).contains(new Env.StoreAddress("127.0.0.1", 4711, "secret"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          RANK                  | x     | RANK must be 0..3 but was x
          RANK                  | 4     | RANK must be 0..3 but was 4
          WORLD_SIZE            | 0     | WORLD_SIZE must be 1 or more but was 0
          MASTER_PORT           | 70000 | MASTER_PORT must be 1..65535 but was 70000
          LOCAL_WORLD_SIZE      | 8     | LOCAL_WORLD_SIZE must be at most WORLD_SIZE = 4 but was 8
          BRAID_TIMEOUT_SECONDS | 0     | BRAID_TIMEOUT_SECONDS must be 1 or more but was 0
          BRAID_SYMMETRIC_MEMORY| ncc   | a memory kind must be one of auto, native, ipc, nccl, nvshmem but was ncc
          BRAID_BACKEND         | gpu   | BRAID_BACKEND must be one of auto, host, cuda but was gpu; try host
          BRAID_WORKER_COPIES   | tma   | BRAID_WORKER_COPIES must be bulk or loads but was tma
          BRAID_SHARE_GPUS      | yes   | BRAID_SHARE_GPUS must be 1 or 0 but was yes
          BRAID_WITHOUT         | nvrtc | BRAID_WITHOUT must be names of nccl, cupti, cudnn, nvshmem, cublas_mp, ucx, separated by commas, but contains nvrtc
          BRAID_ATTENTION       | flash | BRAID_ATTENTION must be one of auto, cudnn, own but was flash
          BRAID_LINK            | fast  | a link must be written bandwidth,latency or unlimited but was fast; bandwidth in GB/s, GiB/s, Gb/s or Gbps (also K, M, T), latency in ns, us, µs, ms or s, for example 0.25GB/s,20us
          """)
  void wrongValuesAreErrorsOfOneLine(String name, String value, String message) {
    var variables = new HashMap<>(COMPLETE);
    variables.put(name, value);
    assertThatThrownBy(() -> Env.read(variables))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          RANK        | WORLD_SIZE is set but RANK is not; set both or neither
          WORLD_SIZE  | RANK is set but WORLD_SIZE is not; set both or neither
          MASTER_PORT | WORLD_SIZE is 4 but MASTER_PORT is not set; it is the port of the ranks' store
          BRAID_TOKEN | MASTER_PORT is set but BRAID_TOKEN is not; it is the store's token
          """)
  void missingVariablesAreErrorsOfOneLine(String name, String message) {
    var variables = new HashMap<>(COMPLETE);
    variables.remove(name);
    if (name.equals("WORLD_SIZE")) {
      variables.remove("LOCAL_WORLD_SIZE");
    }
    assertThatThrownBy(() -> Env.read(variables))
        .isInstanceOf(BraidException.class)
        .hasMessage(message);
  }

  @Test
  void ranksOfOneMachineThatAreDealtTheSameGpuShareIt() {
    var variables = new HashMap<>(COMPLETE);
    variables.putAll(
        Map.of("RANK", "5", "WORLD_SIZE", "8", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "4"));
    var alone = Env.read(variables);
    assertThat(IntStream.range(0, 8).filter(rank -> alone.hasSameGpu(rank, 4))).containsExactly(5);
    variables.put("BRAID_SHARE_GPUS", "1");
    var sharing = Env.read(variables);
    assertThat(IntStream.range(0, 8).filter(rank -> sharing.hasSameGpu(rank, 1)))
        .containsExactly(4, 5, 6, 7);
    assertThat(IntStream.range(0, 8).filter(rank -> sharing.hasSameGpu(rank, 2)))
        .containsExactly(5, 7);
    assertThat(IntStream.range(0, 8).filter(rank -> sharing.hasSameGpu(rank, 3)))
        .containsExactly(5);
  }
}
