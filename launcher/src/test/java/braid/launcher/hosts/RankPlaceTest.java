package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RankPlaceTest {
  /// Variables as the engines set them.
  @ParameterizedTest
  @CsvSource({
    "BRAID_RANK=3, 3, 0",
    "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4, 2, 4",
    "PMI_RANK=1 PMI_SIZE=2, 1, 2",
    "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1, 5, 8",
    "SLURM_PROCID=7 SLURM_STEP_NUM_TASKS=8 SLURM_NTASKS=16, 7, 8",
    "SLURM_PROCID=7 SLURM_NTASKS=8, 7, 8",
    "LWS_WORKER_INDEX=1 LWS_GROUP_SIZE=4, 1, 4",
    "JOB_COMPLETION_INDEX=6, 6, 0",
    "SLURM_PROCID=0 SLURM_NTASKS=1 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4, 3, 4",
    "SLURM_PROCID=1 SLURM_NTASKS=2 RANK=9 WORLD_SIZE=16, 9, 16",
    "JOB_COMPLETION_INDEX=1 RANK=9 WORLD_SIZE=16, 9, 16",
    "BRAID_RANK=1 SLURM_PROCID=0 SLURM_NTASKS=4, 1, 0",
  })
  void theInnermostEngineDecidesTheRank(String variables, int rank, int size) {
    var given = new HashMap<>(Map.of("BRAID_HOST", "h7"));
    for (var each : variables.split(" ", -1)) {
      given.put(each.split("=", 2)[0], each.split("=", 2)[1]);
    }
    var place = RankPlace.of(given);
    assertThat(place.rank()).isEqualTo(rank);
    assertThat(place.size()).isEqualTo(size);
    assertThat(place.host()).isEqualTo("h7");
  }

  @Test
  void theHostIsThatOfSlurmElseItsOwnName() throws Exception {
    assertThat(RankPlace.of(Map.of("BRAID_RANK", "0", "SLURMD_NODENAME", "n3")).host())
        .isEqualTo("n3");
    var name = Files.readString(Path.of("/proc/sys/kernel/hostname"));
    assertThat(RankPlace.of(Map.of("BRAID_RANK", "0")).host()).isEqualTo(name.strip());
  }

  @Test
  void aMissingOrWrongRankIsOneLine() {
    assertThatThrownBy(() -> RankPlace.of(Map.of()))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("braid rank must know its rank but none of BRAID_RANK, ");
    assertThatThrownBy(() -> RankPlace.of(Map.of("RANK", "x")))
        .isInstanceOf(BraidException.class)
        .hasMessage("RANK must be a number of 0 or more but was x; check what sets it");
    assertThatThrownBy(() -> RankPlace.of(Map.of("BRAID_RANK", "-1")))
        .hasMessageStartingWith("BRAID_RANK must be a number of 0 or more but was -1");
  }
}
