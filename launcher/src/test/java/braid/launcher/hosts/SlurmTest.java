package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Slurm starts four ranks on two nodes.
class SlurmTest extends RunOnTwoHosts {
  /// The batch script that is shipped.
  private static final Path SHIPPED = Path.of("..", "docs", "hosts", "braid.sbatch");

  private static final Path NOTEBOOKS = Path.of("../notebooks");

  /// Notebooks with parameters of small problems, measured briefly.
  private static final Map<String, String> SMALL =
      new TreeMap<>(
          Map.of(
              "01_first_overlap.ipynb",
              " -p m=768 -p n=512 -p k=128",
              "02_tune_split_count.ipynb",
              " -p m=768 -p n=512 -p k=128 -p seconds=1 -p splits=1,2,4",
              "04_patterns_side_by_side.ipynb",
              " -p m=768 -p n=512 -p k=128 -p repeats=6",
              "09_context_parallelism.ipynb",
              " -p sequence=384 -p rounds=6 -p splits=1,2"));

  private SlurmCluster slurm;

  @BeforeAll
  static void assume() {
    assume("Slurm", "munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel");
  }

  @BeforeEach
  void startSlurm() throws Exception {
    slurm = new SlurmCluster(hosts, 2, folder);
    expectDaemons();
  }

  /// Returns the job's number.
  private String submit(Path batch) throws Exception {
    return slurm.call(
        "sbatch",
        "--parsable",
        "--chdir=" + folder,
        "--output=output",
        "--nodes=2",
        "--ntasks-per-node=2",
        batch.toRealPath().toString(),
        "n.ipynb",
        "--log-output");
  }

  @Test
  void theBatchScriptRunsANotebookOnItsNodes() throws Exception {
    notebook(HOSTS, VERIFIED, PROFILED);
    var job = submit(SHIPPED);
    assertThat(slurm.end(job)).as(output()).isEqualTo("COMPLETED");
    assertThat(output()).contains("[h1 [0, 1], h2 [2, 3]]", "verified");
    assertThat(saved()).contains("verified").containsPattern("rank +host +exposed ms");
    assertNothingLeft(1, 2);
  }

  @Test
  void ranksOfABatchScriptJoinItsCommand() throws Exception {
    notebook(HOSTS, VERIFIED);
    var batch =
        script(
            "attach.sbatch",
            "srun --overlap --mpi=none ./braid rank --join braid.join &",
            "./braid run \"$@\" -n 4 --launcher attach --listen " + hosts.address(1));
    var job = submit(batch);
    assertThat(slurm.end(job)).as(output()).isEqualTo("COMPLETED");
    assertThat(output()).contains("[h1 [0, 1], h2 [2, 3]]", "verified");
    assertNothingLeft(1, 2);
  }

  @Test
  void startsAndARepeatedRunUseBothNodes() throws Exception {
    notebook(HOSTS, VERIFIED);
    var batch =
        script(
            "again.sbatch",
            "./braid run n.ipynb --launcher slurm --starts 2 --listen %s && ./braid rerun latest"
                .formatted(hosts.address(1)));
    var job = submit(batch);
    assertThat(slurm.end(job)).as(output()).isEqualTo("COMPLETED");
    assertThat(runs().list())
        .hasSize(3)
        .allSatisfy(
            run -> {
              assertThat(run.manifest().text("hosts")).contains("{\"h1\":[0,1],\"h2\":[2,3]}");
              assertThat(saved(run)).contains("[h1 [0, 1], h2 [2, 3]]", "verified");
            });
    assertNothingLeft(1, 2);
  }

  @Test
  void notebooksOfTheRepositoryRunOnBothNodes() throws Exception {
    var run = "./braid run %s --launcher slurm --listen " + hosts.address(1);
    var commands =
        SMALL.entrySet().stream()
            .map(
                each ->
                    run.formatted(NOTEBOOKS.resolve(each.getKey()).toAbsolutePath().normalize())
                        + each.getValue()
                        + " -o out-"
                        + each.getKey())
            .toList();
    var job = submit(script("notebooks.sbatch", String.join(" &&\n", commands)));
    assertThat(slurm.end(job)).as(output()).isEqualTo("COMPLETED");
    assertThat(runs().list())
        .hasSize(SMALL.size())
        .allSatisfy(
            each ->
                assertThat(each.manifest().text("hosts")).contains("{\"h1\":[0,1],\"h2\":[2,3]}"));
    assertNothingLeft(1, 2);
  }

  @Test
  void aKilledRankIsNamedWithItsNode() throws Exception {
    notebook(STUCK);
    var job = submit(SHIPPED);
    awaitStuck();
    hosts.process(2, RANK).orElseThrow().destroyForcibly();
    assertNamed("on h2 (pid");
    assertThat(slurm.end(job)).isEqualTo("FAILED");
    assertThat(output()).containsPattern("rank [23] on h2 \\(pid \\d+\\) was killed by SIGKILL");
    assertThat(saved()).contains("on h2 (pid");
    assertNothingLeft(1, 2);
  }

  @Test
  void aKilledNodeIsNamed() throws Exception {
    notebook(STUCK);
    submit(SHIPPED);
    awaitStuck();
    hosts.kill(2);
    assertNamed("lost: host h2 has not answered for 7 s");
    assertThat(output()).containsPattern("ranks? [23, ]+ on h2 \\(pids? ");
    assertNothingLeft(1);
    assertThat(saved()).contains("host h2 has not answered");
  }

  @Test
  void aCancelledJobSavesItsNotebook() throws Exception {
    notebook(STUCK);
    var job = submit(SHIPPED);
    awaitStuck();
    slurm.call("scancel", job);
    // Slurm signals the front and the agents; on a busy machine the agents may end first.
    assertNamed("braid was told to end by a signal", "its agent has ended");
    assertThat(slurm.end(job)).isEqualTo("CANCELLED");
    assertNothingLeft(1, 2);
    assertThat(saved()).contains("begun");
    assertThat(Files.exists(folder.resolve("braid.join"))).isFalse();
  }
}
