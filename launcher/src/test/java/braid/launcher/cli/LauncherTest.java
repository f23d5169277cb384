package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.launcher.FrontJvm;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Manifest;
import braid.launcher.hosts.JoinKey;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// `braid run --launcher`, with processes that stand for srun, mpirun and other hosts.
@Execution(ExecutionMode.CONCURRENT)
class LauncherTest {
  /// Starts the command after the options as tasks, as srun does; notes its arguments.
  private static final String SRUN =
      """
      #!/bin/bash
      echo "$*" >>"$NOTES"
      for argument; do
        case $argument in
          --ntasks=*) count=${argument#--ntasks=}; shift ;;
          --*) shift ;;
          *) break ;;
        esac
      done
      for ((i = 0; i < count; i++)); do
        SLURM_PROCID=$i SLURM_STEP_NUM_TASKS=$count SLURMD_NODENAME=n$((2 * i / count)) "$@" &
      done
      wait
      """;

  /// As mpirun does.
  private static final String MPIRUN =
      """
      #!/bin/bash
      echo "$*" >>"$NOTES"
      [ "$1" = --version ] && { echo "mpirun (Open MPI) 4.1.4"; exit; }
      count=$2; shift 2
      while [ "${1:0:1}" = - ]; do shift 2; done
      for ((i = 0; i < count; i++)); do
        OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$count BRAID_HOST=m$((2 * i / count)) "$@" &
      done
      wait
      """;

  private static final Code WHERE =
      new Code(
          "world.barrier(); System.out.println(java.util.Arrays.toString(world.gather(world.rank())) + System.getenv(\"BRAID_HOST\"));");

  private static final Code STUCK =
      new Code("System.out.println(\"begun\"); Thread.sleep(Long.MAX_VALUE);");

  /// Key of a command that has ended. Nobody listens at this port.
  private static final String STALE = "127.0.0.1:1/" + "0".repeat(64);

  @TempDir Path directory;
  private final List<Process> agents = new ArrayList<>();

  @AfterEach
  void end() {
    agents.forEach(Process::destroyForcibly);
  }

  private void notebook(Code... cells) throws IOException {
    Files.writeString(directory.resolve("n.ipynb"), Notebooks.json(cells));
  }

  private Map<String, String> withProgram(String name, String script) throws IOException {
    var folder = Files.createDirectories(directory.resolve("bin"));
    var file = Files.writeString(folder.resolve(name), script);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    return Map.of(
        "PATH",
        folder + ":" + System.getenv("PATH"),
        "NOTES",
        directory.resolve("notes").toString(),
        "SLURM_JOB_NUM_NODES",
        "1",
        "SLURM_NTASKS",
        "4");
  }

  private List<Manifest> manifests() {
    return new Experiments(directory.resolve("runs"))
        .list().stream().map(Experiments.Found::manifest).toList();
  }

  private String saved() {
    var runs = new Experiments(directory.resolve("runs"));
    var folder = runs.find(Experiments.LATEST).directory();
    return Notebook.read(folder.resolve("n.out.ipynb")).toJson();
  }

  @Test
  void srunStartsRanksThatRunANotebook() throws Exception {
    notebook(WHERE);
    var variables = withProgram("srun", SRUN);
    var ran =
        Ran.apart(directory, variables, (_, _) -> {}, "run", "n.ipynb", "--launcher", "slurm");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(saved()).contains("[0, 1, 2, 3]n0");
    assertThat(Files.readString(directory.resolve("notes")))
        .startsWith("--ntasks=4 --kill-on-bad-exit=1 --overlap --distribution=block --mpi=none")
        .endsWith(" rank\n")
        .doesNotContainPattern("[0-9a-f]{64}");
    assertThat(directory.resolve("braid.join")).doesNotExist();
  }

  @Test
  void startsAndARepeatedRunUseTheirLauncher() throws Exception {
    notebook(WHERE);
    var variables = withProgram("srun", SRUN);
    var ran =
        Ran.apart(
            directory,
            variables,
            (_, _) -> {},
            "run",
            "n.ipynb",
            "-n",
            "2",
            "--launcher",
            "slurm",
            "--launcher-options",
            "--label",
            "--starts",
            "2");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.err()).contains("start 2 of 2");
    assertThat(saved()).contains("[0, 1]n0");
    var notes = directory.resolve("notes");
    assertThat(Files.readAllLines(notes)).as("agents serve all starts").hasSize(1);

    var again = Ran.apart(directory, variables, (_, _) -> {}, "rerun", "latest");
    assertThat(again.exitCode()).as(again.err()).isZero();
    assertThat(again.err()).doesNotContain("session.");
    assertThat(saved()).contains("[0, 1]n0");
    assertThat(Files.readAllLines(notes))
        .hasSize(2)
        .allMatch(line -> line.contains("--ntasks=2 ") && line.contains(" --label "));
    assertThat(manifests())
        .hasSize(3)
        .allSatisfy(
            each -> {
              assertThat(each.text("session.launcher")).contains("slurm");
              assertThat(each.text("hosts")).contains("{\"n0\":[0],\"n1\":[1]}");
            });
    var local =
        Ran.apart(
            directory,
            Map.of("BRAID_BACKEND", "host"),
            (_, _) -> {},
            "rerun",
            "latest",
            "--launcher",
            "local");
    assertThat(local.exitCode()).as(local.err()).isZero();
    assertThat(local.err()).containsPattern("session\\.launcher +slurm +none");
    assertThat(saved()).contains("[0, 1]null");
  }

  private Ran mpi(Map<String, String> variables, String options) throws Exception {
    return Ran.apart(
        directory,
        variables,
        (_, _) -> {},
        "run",
        "n.ipynb",
        "-n",
        "2",
        "--launcher",
        "mpi",
        "--launcher-options",
        options);
  }

  @Test
  void mpirunStartsRanksThatRunANotebook() throws Exception {
    notebook(WHERE);
    var variables = withProgram("mpirun", MPIRUN);
    var ran = mpi(variables, "--host h1:1,h2:1");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(saved()).contains("[0, 1]m0");
    assertThat(Files.readString(directory.resolve("notes")))
        .contains("-n 2 -x BRAID_JOIN --host h1:1,h2:1 ");
  }

  @Test
  void openMpiStartsRanks() throws Exception {
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/mpirun")), "Open MPI is not installed");
    notebook(WHERE);
    var variables = Map.of("OMPI_ALLOW_RUN_AS_ROOT", "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    var ran = mpi(variables, "--oversubscribe --host localhost:2");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(saved()).contains("[0, 1]null");
  }

  @Test
  void anEngineThatFailsIsNamed() throws Exception {
    notebook(WHERE);
    var variables = withProgram("srun", "#!/bin/bash\necho srun: no nodes; exit 3\n");
    var ran =
        Ran.apart(directory, variables, (_, _) -> {}, "run", "n.ipynb", "--launcher", "slurm");
    assertThat(ran.exitCode()).isNotZero();
    assertThat(ran.err())
        .contains("srun: no nodes")
        .contains("srun ended with code 3 before ranks 0, 1, 2, 3 had joined");
  }

  /// Starts agents for the key of a front that has begun to wait.
  private void attach(int count) {
    while (!Files.exists(directory.resolve("braid.join"))) {
      Thread.onSpinWait();
    }
    for (int rank = 0; rank < count; rank++) {
      agents.add(agent(rank));
    }
  }

  private Process agent(int rank, String... options) {
    var command = new ArrayList<>(FrontJvm.command());
    command.addAll(List.of("braid.launcher.cli.Braid", "rank", "--join", "braid.join"));
    command.addAll(List.of(options));
    var builder = new ProcessBuilder(command).directory(directory.toFile());
    builder.redirectErrorStream(true);
    builder.redirectOutput(directory.resolve("agent" + rank).toFile());
    builder.environment().put("BRAID_RANK", Integer.toString(rank));
    try {
      return builder.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private Process front(String... options) throws IOException {
    var arguments =
        new ArrayList<>(
            List.of("run", "n.ipynb", "-n", "2", "--log-output", "--launcher", "attach"));
    arguments.addAll(List.of(options));
    return braid(arguments.toArray(String[]::new));
  }

  private Process braid(String... arguments) throws IOException {
    var command = new ArrayList<>(Ran.command());
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command)
        .directory(directory.toFile())
        .redirectErrorStream(true)
        .start();
  }

  private static void signal(String name, long pid) throws IOException, InterruptedException {
    assertThat(new ProcessBuilder("kill", "-" + name, Long.toString(pid)).start().waitFor())
        .isZero();
  }

  /// Waits for the line and returns the processes of the ranks.
  private List<ProcessHandle> ranksAt(String line, Process front) throws IOException {
    var lines = front.inputReader();
    for (var next = lines.readLine(); next != null; next = lines.readLine()) {
      if (next.contains(line)) {
        return agents.stream().flatMap(agent -> agent.toHandle().children()).toList();
      }
    }
    throw new IOException("the front ended before " + line);
  }

  private void assertAllEnd(List<ProcessHandle> ranks, int exitValue) throws Exception {
    assertThat(ranks).hasSize(2);
    for (var agent : agents) {
      assertThat(agent.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(agent.exitValue()).isEqualTo(exitValue);
    }
    for (var rank : ranks) {
      rank.onExit().get(30, TimeUnit.SECONDS);
    }
  }

  @Test
  void ranksOfOthersServeAllStartsOfACommand() throws Exception {
    notebook(WHERE);
    var front = front("--starts", "2");
    attach(2);
    assertThat(front.waitFor(100, TimeUnit.SECONDS)).isTrue();
    assertThat(front.exitValue()).isZero();
    assertThat(manifests()).hasSize(2);
    for (var agent : agents) {
      assertThat(agent.waitFor(30, TimeUnit.SECONDS)).isTrue();
      assertThat(agent.exitValue()).isZero();
    }

    var refused = Ran.apart(directory, Map.of(), (_, _) -> {}, "rerun", "latest");
    assertThat(refused.exitCode()).isEqualTo(2);
    assertThat(refused.err())
        .contains("others started those of")
        .containsPattern("try braid rerun \\S+ --launcher attach");
    agents.clear();
    var again = braid("rerun", "latest", "--launcher", "attach");
    attach(2);
    assertThat(again.waitFor(100, TimeUnit.SECONDS)).isTrue();
    assertThat(again.exitValue()).isZero();
    assertThat(manifests()).hasSize(3);
    assertThat(saved()).contains("[0, 1]");
  }

  /// A batch script starts ranks and command at the same time, perhaps beside the file of a killed
  /// command.
  @Test
  void ranksWaitForTheFileOfTheirCommand() throws Exception {
    notebook(WHERE);
    agents.add(agent(0));
    var stale = Files.writeString(directory.resolve("stale"), STALE);
    Files.setPosixFilePermissions(stale, PosixFilePermissions.fromString("rw-------"));
    Files.move(stale, directory.resolve("braid.join"));
    agents.add(agent(1));
    var front = front();
    assertThat(front.waitFor(100, TimeUnit.SECONDS)).isTrue();
    assertThat(front.exitValue()).isZero();
    assertThat(saved()).contains("[0, 1]");
  }

  @Test
  void aCommandThatNeverListensIsNamed() throws Exception {
    agents.add(agent(0, "--join-timeout", "1s"));
    assertThat(agents.getFirst().waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(agents.getFirst().exitValue()).isEqualTo(2);
    assertThat(Files.readString(directory.resolve("agent0")))
        .contains(
            "rank 0 cannot join a front within 1 s: braid.join does not exist; is the front running");
  }

  @Test
  void aKilledFrontLeavesNothing() throws Exception {
    notebook(STUCK);
    var front = front();
    attach(2);
    var ranks = ranksAt("begun", front);
    signal("KILL", front.pid());
    assertAllEnd(ranks, 1);
    assertThat(Files.readString(directory.resolve("agent0"))).contains("has ended");
  }

  @Test
  void aSilentFrontLeavesNothing() throws Exception {
    notebook(STUCK);
    var front = front();
    attach(2);
    var ranks = ranksAt("begun", front);
    signal("STOP", front.pid());
    assertAllEnd(ranks, 1);
    front.destroyForcibly();
    assertThat(Files.readString(directory.resolve("agent1"))).contains("has been silent for 15 s");
  }

  @Test
  void aLostHostEndsTheRunAndTheNotebookIsSaved() throws Exception {
    notebook(WHERE, STUCK);
    var front = front();
    attach(2);
    ranksAt("begun", front);
    signal("KILL", agents.get(1).pid());
    assertThat(front.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(front.exitValue()).isEqualTo(138);
    assertThat(saved()).contains("[0, 1]").contains("was lost: its agent has ended");
    assertThat(agents.getFirst().waitFor(30, TimeUnit.SECONDS)).isTrue();
    assertThat(agents.getFirst().exitValue()).isZero();
  }

  @Test
  void sigtermEndsAFrontThatWaitsForRanks() throws Exception {
    notebook(WHERE);
    var front = front();
    while (!Files.exists(directory.resolve("braid.join"))) {
      Thread.onSpinWait();
    }
    assertThat(JoinKey.read(directory.resolve("braid.join")).address()).isEqualTo("127.0.0.1");
    signal("TERM", front.pid());
    assertThat(front.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(directory.resolve("braid.join")).doesNotExist();
  }
}
