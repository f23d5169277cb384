package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Slurm starts four ranks on two nodes.
class SlurmTest extends RunOnTwoHosts {
  /// The batch script that is shipped.
  private static final Path SHIPPED = Path.of("..", "docs", "hosts", "braid.sbatch");

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
