package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cli.Braid;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;

/// The manifests and scripts of docs/hosts.
class ManifestsTest {
  private static final Path HOSTS = Path.of("..", "docs", "hosts");

  private static Object yaml(String name) throws Exception {
    return new Load(LoadSettings.builder().build())
        .loadFromString(Files.readString(HOSTS.resolve(name)));
  }

  /// Follows names and indices.
  private static Object at(Object root, Object... path) {
    var node = root;
    for (var step : path) {
      node =
          Objects.requireNonNull(
              node instanceof List<?> list && step instanceof Integer index
                  ? list.get(index)
                  : ((Map<?, ?>) node).get(step),
              () -> "there is no " + step);
    }
    return node;
  }

  private static void assertParses(Object command, String program) {
    var words = ((List<?>) command).stream().map(String::valueOf).toList();
    int first = words.indexOf(program);
    assertThat(first).as(words.toString()).isNotNegative();
    assertThat(
            Braid.commandLine()
                .parseArgs(words.subList(first + 1, words.size()).toArray(String[]::new))
                .errors())
        .isEmpty();
  }

  @Test
  void theJobSetHasAFrontAndARankForEachPod() throws Exception {
    var set = yaml("jobset.yaml");
    assertThat(at(set, "kind")).isEqualTo("JobSet");
    Object[] container = {"template", "spec", "template", "spec", "containers", 0};
    var front = at(at(set, "spec", "replicatedJobs", 0), container);
    var ranks = at(set, "spec", "replicatedJobs", 1);
    assertParses(at(front, "command"), "/opt/braid/braid");
    assertParses(at(at(ranks, container), "command"), "/opt/braid/braid");
    var command = (List<?>) at(front, "command");
    assertThat(command.get(command.indexOf("-n") + 1))
        .isEqualTo(String.valueOf(at(ranks, "template", "spec", "completions")));
    assertThat(at(ranks, "template", "spec", "completionMode")).isEqualTo("Indexed");
    for (var each : List.of(front, at(ranks, container))) {
      assertThat(at(each, "env", 0, "name")).isEqualTo(JoinKey.VARIABLE);
    }
  }

  @Test
  void theTrainJobStartsRanksByTorchrun() throws Exception {
    var job = yaml("trainjob.yaml");
    assertThat(at(job, "kind")).isEqualTo("TrainJob");
    assertParses(at(job, "spec", "trainer", "command"), "/opt/braid/braid");
    assertThat(at(job, "spec", "trainer", "env", 0, "name")).isEqualTo(JoinKey.VARIABLE);
  }

  /// A stub of the command shows its arguments.
  @Test
  void theBatchScriptRunsTheCommand(@TempDir Path folder) throws Exception {
    var braid = Files.writeString(folder.resolve("braid"), "#!/bin/sh\necho \"$@\"\n");
    assertThat(braid.toFile().setExecutable(true)).isTrue();
    var script =
        new ProcessBuilder("bash", HOSTS.resolve("braid.sbatch").toRealPath().toString(), "n.ipynb")
            .directory(folder.toFile())
            .redirectErrorStream(true);
    script.environment().put("BRAID_LISTEN", "10.0.0.1");
    var process = script.start();
    var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(text).isEqualTo("run n.ipynb --launcher slurm --listen 10.0.0.1\n");
    assertThat(Braid.commandLine().parseArgs(text.strip().split(" ", -1)).errors()).isEmpty();
  }
}
