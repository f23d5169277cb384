package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Slurm starts four ranks on two nodes.
class SlurmTest extends RunOnTwoHosts {
  /// The batch script that is shipped.
  private static final Path SHIPPED = Path.of("..", "docs", "hosts", "braid.sbatch");

  private static final List<String> NOTEBOOKS =
      List.of(
          "01_first_overlap.ipynb",
          "02_tune_split_count.ipynb",
          "04_patterns_side_by_side.ipynb",
          "09_context_parallelism.ipynb");

  /// Parameters of small problems, measured briefly.
  private static final Map<String, String> SMALL =
      Map.of(
          "m",
          "768",
          "n",
          "512",
          "k",
          "128",
          "splits",
          "{1, 4}",
          "seconds",
          "1",
          "sequence",
          "384",
          "rounds",
          "6",
          "repeats",
          "6");

  @TempDir static Path configuration;

  private @Nullable SlurmCluster cluster;

  @BeforeAll
  static void assume() {
    assume("Slurm", "munged", "slurmctld", "slurmd", "sbatch", "srun", "scancel");
  }

  @Override
  void boot(NamespaceHosts booted) throws Exception {
    cluster = new SlurmCluster(booted, 2, configuration);
  }

  private SlurmCluster slurm() {
    return Objects.requireNonNull(cluster);
  }

  /// Submits a run of notebooks and returns the job's number.
  private String submit(Path batch, String... notebooks) throws Exception {
    var command =
        new ArrayList<>(
            List.of(
                "sbatch",
                "--parsable",
                "--chdir=" + folder,
                "--output=output",
                "--nodes=2",
                "--ntasks-per-node=2",
                batch.toRealPath().toString()));
    command.addAll(List.of(notebooks));
    command.add("--log-output");
    return slurm().call(command.toArray(String[]::new));
  }

  @Test
  void ranksOfABatchScriptJoinItsCommand() throws Exception {
    notebook(HOSTS, VERIFIED);
    var batch =
        script(
            "attach.sbatch",
            "srun --overlap --mpi=none ./braid rank --join braid.join &",
            "./braid run \"$@\" -n 4 --launcher attach --listen " + hosts.address(1));
    var job = submit(batch, "n.ipynb");
    assertThat(slurm().end(job)).as(output()).isEqualTo("COMPLETED");
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
    var job = submit(batch, "n.ipynb");
    assertThat(slurm().end(job)).as(output()).isEqualTo("COMPLETED");
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
  void theBatchScriptRunsNotebooksOnItsNodes() throws Exception {
    notebook(HOSTS, VERIFIED, PROFILED);
    for (var name : NOTEBOOKS) {
      var text = Files.readString(Path.of("../notebooks", name));
      for (var each : SMALL.entrySet()) {
        var declared =
            Pattern.compile(
                "(%s %s = )[^;]*;"
                    .formatted(each.getValue().startsWith("{") ? "int\\[]" : "int", each.getKey()));
        text = declared.matcher(text).replaceAll("$1" + each.getValue() + ";");
      }
      Files.writeString(folder.resolve(name), text);
    }
    var notebooks = new ArrayList<>(NOTEBOOKS);
    notebooks.add("n.ipynb");
    var job = submit(SHIPPED, notebooks.toArray(String[]::new));
    assertThat(slurm().end(job)).as(output()).isEqualTo("COMPLETED");
    assertThat(output()).contains("[h1 [0, 1], h2 [2, 3]]", "verified");
    assertThat(saved()).contains("verified").containsPattern("rank +host +exposed ms");
    assertThat(runs().list()).hasSize(1 + NOTEBOOKS.size());
    assertNothingLeft(1, 2);
  }

  @Test
  void aKilledRankAndAKilledNodeAreNamed() throws Exception {
    notebook(STUCK);
    notebook("second", STUCK);
    var job = submit(SHIPPED, "n.ipynb", "second.ipynb");
    killRankOfFirstNotebook();
    hosts.kill(2);
    assertNamed("lost: host h2 has not answered for 7 s");
    assertThat(output()).containsPattern("ranks? [23, ]+ on h2 \\(pids? ");
    assertNothingLeft(1);
    assertThat(slurm().call("scontrol", "show", "job", job)).contains("ExitCode=138:0");
    assertSavedWithKilledRankAndLostHost();
  }

  @Test
  void aCancelledJobSavesItsNotebook() throws Exception {
    notebook(STUCK);
    var job = submit(SHIPPED, "n.ipynb");
    awaitStuck();
    slurm().call("scancel", job);
    // Slurm signals the front and the agents; on a busy machine the agents may end first.
    assertNamed("braid was told to end by a signal", "its agent has ended");
    assertThat(slurm().end(job)).isEqualTo("CANCELLED");
    assertNothingLeft(1, 2);
    assertThat(saved()).contains("begun");
    assertThat(Files.exists(folder.resolve("braid.join"))).isFalse();
  }
}
