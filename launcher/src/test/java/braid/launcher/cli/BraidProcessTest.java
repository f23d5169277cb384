package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import braid.launcher.experiment.Experiments;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Behaviour that only a separate process shows: exit codes, signals, the current directory.
@Execution(ExecutionMode.CONCURRENT)
class BraidProcessTest {
  @TempDir Path directory;

  private Path notebook(Code... cells) throws IOException {
    return Files.writeString(directory.resolve("n.ipynb"), Notebooks.json(cells));
  }

  private static void onlyRead(Process process, String line) {}

  private Ran braid(String... arguments) throws IOException, InterruptedException {
    return Ran.apart(directory, Map.of(), BraidProcessTest::onlyRead, arguments);
  }

  /// Returns the output of the latest run.
  private Path output() {
    var runs = new Experiments(directory.resolve("runs"));
    return runs.find(Experiments.LATEST).directory().resolve("n.out.ipynb");
  }

  private String status(int cell) {
    return Notebook.read(output()).cells().get(cell).papermill().get("status").getAsString();
  }

  @Test
  void aRunSavesInItsFolderAndReadsTheEnvironment() throws Exception {
    notebook(new Code("System.out.println(System.getenv(\"WORLD_SIZE\"));"));
    var ran =
        Ran.apart(
            directory, Map.of("BRAID_RANKS", "2"), BraidProcessTest::onlyRead, "run", "n.ipynb");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out()).contains("saved   " + output() + "\n");
    assertThat(directory.toFile().list()).containsExactlyInAnyOrder("n.ipynb", "runs");
    assertThat(status(0)).isEqualTo("completed");
    assertThat(ran.err()).contains("on 2 ranks");
  }

  /// The front's cells run there too: the whole process does.
  @Test
  void cellsRunInTheDirectoryOfCwdAndFilesStayInTheCurrentOne() throws Exception {
    var data = Files.createDirectory(directory.resolve("data"));
    Files.writeString(data.resolve("x.txt"), "of the ranks");
    notebook(
        new Code("System.out.println(Files.readString(Path.of(\"x.txt\")));"),
        new Code("%%front\nnew java.io.File(\"x.txt\").exists() ? \"in front\" : \"nowhere\""),
        new Code("SymmetricTensor.on(world).shape(1).allocate().kind()"));
    var options = List.of("-n", "2", "--cwd", "data", "--memory", "native", "--log-output");
    var first = new ArrayList<>(List.of("run", "n.ipynb", "o.ipynb"));
    first.addAll(options);
    var ran =
        Ran.apart(
            directory,
            Map.of("BRAID_SYMMETRIC_MEMORY", "ipc"),
            BraidProcessTest::onlyRead,
            first.toArray(String[]::new));
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.err())
        .contains("o.ipynb does not exist and so is the output of ")
        .containsSubsequence("\nof the ranks\ncell 1 of 3: done", "\nin front\n", "\nnative\n");
    assertThat(ran.out()).contains("saved   " + directory.resolve("o.ipynb") + "\n");
    assertThat(data)
        .isDirectoryNotContaining("glob:**.ipynb")
        .isDirectoryNotContaining("glob:**runs");
    var saved = Notebook.read(directory.resolve("o.ipynb"));
    assertThat(saved.cells().getFirst().outputs().toString()).contains("of the ranks");

    // again: the output of the first run is the output of this one, not a second notebook
    ran = braid("run", "n.ipynb", "o.ipynb", "-n", "1", "--cwd", data.toString());
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.err())
        .contains("o.ipynb is an earlier output of ")
        .doesNotContain("of the ranks");

    ran = braid("rerun", "latest");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out()).contains("saved   " + output() + "\n");
  }

  /// Not even root can create a home in /proc. A folder that another user created first in the
  /// temporary directory holds that user's libraries.
  @Test
  void aUserWithoutAHomeLoadsNoLibrariesFromAFolderOpenToOthers() throws Exception {
    notebook(new Code("1"));
    var options =
        Map.of(
            "JAVA_TOOL_OPTIONS", "-Duser.home=/proc/none -Djava.io.tmpdir=" + directory.toString());
    var ran =
        Ran.apart(directory, options, BraidProcessTest::onlyRead, "run", "n.ipynb", "-n", "1");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    var own = directory.resolve("braid-" + Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(own)))
        .isEqualTo("rwx------");

    Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwxrwxrwx"));
    ran = Ran.apart(directory, options, BraidProcessTest::onlyRead, "run", "n.ipynb", "-n", "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(2);
    assertThat(ran.err())
        .contains(own + " must be a folder of this user alone (mode 0700)")
        .doesNotContain("defect", "\tat ");

    ran = Ran.apart(directory, options, BraidProcessTest::onlyRead, "doctor");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(1);
    assertThat(ran.out())
        .contains("cannot be loaded: " + own + " must be a folder of this user alone (mode 0700)")
        .contains("remove it, or set HOME to a folder of yours");
    assertThat(ran.err()).doesNotContain("defect", "\tat ");
  }

  @Test
  void exitsWith138WhereARankDied() throws Exception {
    notebook(new Code("1"), new Code("Runtime.getRuntime().halt(1);"), new Code("3"));
    var ran = braid("run", "n.ipynb", "-n", "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(138);
    assertThat(ran.err()).contains("rank 0").contains("exited with code 1");
    assertThat(status(1)).isEqualTo("failed");
    assertThat(status(2)).isEqualTo("pending");
  }

  @Test
  void exitsWith4AtATimeLimit() throws Exception {
    notebook(new Code("while (true) Thread.sleep(1);"));
    var ran = braid("run", "n.ipynb", "-n", "1", "--cell-timeout", "0.5");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(4);
    assertThat(ran.err()).contains("must end within --cell-timeout 0.5 s but did not");
    assertThat(status(0)).isEqualTo("failed");
  }

  static List<String> floods() {
    return Sweep.oneOf(
        3,
        List.of(
            "while (true) System.err.println(\"x\".repeat(100));",
            "while (true) System.out.print(\"x\".repeat(100));",
            "while (true) display(1);",
            "while (true) System.out.println();",
            "%%front\nwhile (true) System.out.println(\"x\".repeat(100));"));
  }

  /// The heap cannot hold everything that the ranks print in that time.
  @ParameterizedTest
  @MethodSource("floods")
  void aFloodEndsAtTheTimeLimitAndLeavesASmallNotebook(String flood) throws Exception {
    notebook(new Code(flood), new Code("2"));
    var ran =
        Ran.apart(
            directory,
            Map.of("JAVA_TOOL_OPTIONS", "-Xmx320m"),
            BraidProcessTest::onlyRead,
            "run",
            "n.ipynb",
            "-n",
            "3",
            "--cell-timeout",
            "5",
            "--output-limit",
            "2MiB",
            "--junit",
            "j.xml",
            "--report",
            "r.html");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(4);
    assertThat(status(0)).isEqualTo("failed");
    assertThat(output()).content().hasSizeLessThan(8 << 20);
    assertThat(directory.resolve("j.xml")).content().contains("must end within --cell-timeout 5 s");
    assertThat(directory.resolve("r.html")).isNotEmptyFile();
  }

  @Test
  void aFrontCellThatWouldEndTheRunFails() throws Exception {
    notebook(
        new Code("%%front\nSystem.exit(0);", "raises-exception"),
        new Code("%%front\nRuntime.getRuntime().exit(0);", "raises-exception"),
        new Code("%%front\nRuntime.getRuntime().halt(0);"),
        new Code("4"));
    var ran = braid("run", "n.ipynb", "-n", "1", "--junit", "j.xml");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(1);
    var refused = "a %%front cell must not end the session but called ";
    assertThat(ran.err()).contains(refused + "Runtime.halt(0);");
    var cells = Notebook.read(output()).cells();
    assertThat(cells.get(0).outputs().toString()).contains(refused + "System.exit(0);");
    assertThat(cells.get(1).outputs().toString()).contains(refused + "Runtime.exit(0);");
    assertThat(status(2)).isEqualTo("failed");
    assertThat(status(3)).isEqualTo("pending");
    assertThat(directory.resolve("j.xml")).content().contains("<failure").contains("Runtime.halt");
  }

  /// The method is called by reflection, as in a library, so cells contain no call to weave.
  @ParameterizedTest
  @CsvSource({"exit", "halt"})
  void aRunThatALibraryEndsIsANamedFailure(String call) throws Exception {
    notebook(
        new Code("1"),
        new Code(
            "%%front\nRuntime.class.getMethod(\""
                + call
                + "\", int.class)"
                + ".invoke(Runtime.getRuntime(), 0);"),
        new Code("3"));
    var ran = braid("run", "n.ipynb", "-n", "1", "--junit", "j.xml", "--report", "r.html");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(1);
    assertThat(ran.out()).startsWith("braid: the process was ended before its last cell");
    assertThat(status(0)).isEqualTo("completed");
    assertThat(status(2)).isEqualTo("pending");
    for (var report : List.of("j.xml", "r.html")) {
      assertThat(directory.resolve(report))
          .content()
          .contains("did not finish: the process ended meanwhile")
          .contains("n.out.ipynb has the cells that ran");
    }
    assertThat(directory.resolve("j.xml")).content().contains("errors=\"1\"");
  }

  @Test
  void aRankThatEndsWith0HasDied() throws Exception {
    notebook(new Code("1"), new Code("System.exit(0);"), new Code("3"));
    var ran = braid("run", "n.ipynb", "-n", "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(138);
    assertThat(ran.err()).contains("rank 0").contains("exited with code 0");
  }

  @Test
  void aSelfTestAtItsTimeLimitKeepsItsResults() throws Exception {
    var ran = braid("selftest", "-n", "1", "--backend", "host", "--timeout", "2");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(4);
    assertThat(ran.out()).contains("must end within --timeout 2 s but did not").contains("ABORTED");
  }

  @Test
  void exitsWith3WhereAResultIsWrong() throws Exception {
    notebook(new Code("throw new braid.model.VerificationFailed(\"differs\");"));
    var ran = braid("run", "n.ipynb", "-n", "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(3);
  }

  @Test
  void exitsWith2AndOneLineOnAMistake() throws Exception {
    var ran = braid("run", "none.ipynb");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .isEqualTo(
            "braid: notebook must be a file but none.ipynb does not exist; check the path\n");
  }

  @ParameterizedTest
  @CsvSource({"INT, 130", "TERM, 143"})
  void aSignalEndsARunAndItsOutputsAreSaved(String signal, int exitCode) throws Exception {
    notebook(new Code("1"), new Code("while (true) Thread.sleep(1);"), new Code("3"));
    var ran =
        Ran.apart(
            directory,
            Map.of(),
            (process, line) -> {
              if (line.startsWith("cell 2 of 3")) {
                send(signal, process);
              }
            },
            "run",
            "n.ipynb",
            "-n",
            "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(exitCode);
    assertThat(status(0)).isEqualTo("completed");
    assertThat(status(1)).isEqualTo("failed");
    assertThat(status(2)).isEqualTo("pending");
  }

  /// The second cell opens a pipe that nobody writes, which no interrupt ends: so the second one
  /// always comes before its end.
  @Test
  void aSecondInterruptEndsTheRanksAndOutputsAreSaved() throws Exception {
    var pipe = directory.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).inheritIO().start().waitFor())
        .isZero();
    notebook(
        new Code("1"),
        new Code("new java.io.FileInputStream(\"%s\").close();".formatted(pipe)),
        new Code("3"));
    var ran =
        Ran.apart(
            directory,
            Map.of(),
            (process, line) -> {
              if (line.startsWith("cell 2 of 3") || line.startsWith("braid: interrupted;")) {
                send("INT", process);
              }
            },
            "run",
            "n.ipynb",
            "-n",
            "2");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(130);
    assertThat(ran.err()).contains("braid: interrupted again").doesNotContain("ignored");
    assertThat(status(0)).isEqualTo("completed");
    assertThat(status(1)).isEqualTo("failed");
    assertThat(status(2)).isEqualTo("pending");
  }

  private static void send(String signal, Process process) {
    try {
      new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid())).inheritIO().start();
    } catch (IOException e) {
      throw new IllegalStateException("no kill here", e);
    }
  }

  /// A program named like Jupyter that prints its arguments.
  @Test
  void labOpensJupyterWithATemporaryKernelspec() throws Exception {
    var programs = Files.createDirectory(directory.resolve("bin"));
    var jupyter =
        Files.writeString(
            programs.resolve("jupyter-notebook"),
            """
            #!/bin/sh
            echo "arguments $*"
            echo "path $JUPYTER_PATH"
            cat "${JUPYTER_PATH%%:*}/kernels/braid/kernel.json"
            exit 7
            """);
    assertThat(jupyter.toFile().setExecutable(true)).isTrue();
    var environment =
        Map.of(
            "PATH",
            programs + ":/usr/bin:/bin",
            "JUPYTER_PATH",
            "/mine",
            "JUPYTER_RUNTIME_DIR",
            "/run/mine");
    var ran =
        Ran.apart(
            directory,
            environment,
            BraidProcessTest::onlyRead,
            "lab",
            "--notebooks",
            ".",
            "-n",
            "2",
            "--",
            "--no-browser");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(7);
    assertThat(ran.out())
        .contains(
            "arguments " + directory.resolve(".") + " --KernelManager.transport=ipc --no-browser\n")
        .contains("Braid (2 ranks)")
        .containsPattern("path \\S+:/mine\n");
    var data = ran.out().replaceAll("(?s).*path ([^:]+):/mine.*", "$1");
    assertThat(Path.of(data)).isAbsolute().doesNotExist();
  }

  /// Prints its kernelspec's folder, runs `then`, and stays.
  private Map<String, String> withJupyterThatStays(String then) throws IOException {
    var programs = Files.createDirectory(directory.resolve("bin"));
    var jupyter =
        Files.writeString(
            programs.resolve("jupyter-notebook"),
            """
            #!/bin/sh
            echo "${JUPYTER_PATH%%:*}"
            ls "${JUPYTER_PATH%%:*}/kernels/braid/kernel.json" >&2
            THEN
            exec sleep 600
            """
                .replace("THEN", then));
    assertThat(jupyter.toFile().setExecutable(true)).isTrue();
    return Map.of("PATH", programs + ":/usr/bin:/bin");
  }

  @ParameterizedTest
  @CsvSource({"TERM, 143", "INT, 130", "HUP, 129", "KILL, 137"})
  void labEndsJupyterAndRemovesItsFolder(String signal, int code) throws Exception {
    var ran =
        Ran.apart(
            directory,
            withJupyterThatStays(""),
            (process, line) -> send(signal, process),
            "lab",
            "--notebooks",
            ".",
            "-n",
            "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(code);
    assertThat(ran.err()).contains("/kernels/braid/kernel.json\n");
    awaitRemoved(Path.of(ran.out().strip()));
  }

  /// Waits until nothing has this name. A process of its own removes what a killed command leaves.
  private static void awaitRemoved(Path folder) {
    assertThat(folder).isAbsolute();
    while (Files.exists(folder)) {
      Thread.onSpinWait();
    }
  }

  /// The command is killed before it has seen Jupyter running.
  @Test
  void aJupyterThatKillsTheCommandAtOnceIsEnded() throws Exception {
    var ran =
        Ran.apart(
            directory,
            withJupyterThatStays("kill -KILL $PPID"),
            BraidProcessTest::onlyRead,
            "lab",
            "--notebooks",
            ".",
            "-n",
            "1");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(137);
    awaitRemoved(Path.of(ran.out().strip()));
  }

  @Test
  void aMissingJupyterIsExplained() throws Exception {
    var ran = Ran.apart(directory, Map.of("PATH", "/nowhere"), BraidProcessTest::onlyRead, "lab");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .isEqualTo(
            "braid: lab needs jupyter-lab or jupyter-notebook on PATH but found neither; install"
                + " one: apt install jupyter-notebook, or pip install jupyterlab (braid run"
                + " NOTEBOOK needs no Jupyter)\n");
  }
}
