package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.Capabilities;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.model.BackendKind;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class BraidTest {
  @TempDir Path directory;
  private Path notebook;

  @BeforeEach
  void write() throws IOException {
    notebook = directory.resolve("tune.ipynb");
    Files.writeString(
        notebook,
        Notebooks.json(
            new Code("int m = 1;\nint[] splits = {1};", "parameters"),
            new Code("System.out.println(\"m=\" + m);")));
  }

  private Path out() {
    return directory.resolve("out.ipynb");
  }

  private Ran run(String... more) {
    var arguments = new ArrayList<>(List.of("run", notebook.toString(), "-o", "" + out()));
    arguments.addAll(List.of(more));
    return Ran.here(arguments.toArray(String[]::new));
  }

  @Test
  void aNotebookRuns() throws IOException {
    var before = Files.readString(notebook);
    var junit = directory.resolve("junit.xml");
    var ran = run("-n", "1", "-p", "m=7", "--junit", junit.toString());
    assertThat(ran.err())
        .contains("running 3 cells on 1 rank\n")
        .contains("cell 1 of 3: int m = 1;\n")
        .containsPattern("cell 3 of 3: done in \\d+\\.\\d s\n");
    assertThat(ran.out())
        .containsPattern("tune.ipynb: 3 cells ran on 1 rank in \\d+\\.\\d s\n")
        .contains("backend ", "saved   " + out() + "\n")
        .contains("junit   " + junit + "\n");
    assertThat(ran.exitCode()).isZero();
    assertThat(Notebook.read(out()).cells().getLast().outputs().toString()).contains("m=7");
    assertThat(Files.readString(notebook)).isEqualTo(before);
    assertThat(junit).content().contains("<testcase").contains("m=7");
  }

  @Test
  void aFailedRunPrintsTheFailureAndItsOutput() throws IOException {
    Files.writeString(
        notebook,
        Notebooks.json(
            new Code("System.out.println(\"so far\"); throw new Error(\"boom\");"), new Code("2")));
    var ran = run("-n", "1");
    assertThat(ran.exitCode()).isEqualTo(1);
    assertThat(ran.err())
        .contains("braid: cell 1 failed: System.out.println")
        .contains("  | so far\n")
        .contains("Error: boom");
    assertThat(ran.out()).contains("1 of 2 cells ran on 1 rank").contains("1 failed, 1 not run");
  }

  /// Each user error prints one line on stderr, exits with code 2 and writes nothing.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "-n 0|braid: -n must be 1..",
        "-n -3|braid: -n must be 1..",
        "-n 100000|braid: -n must be 1..",
        "-n four|braid: -n must be a number of ranks, 1..",
        "--backend gpu|braid: --backend must be one of auto, host, cuda but was gpu; try host",
        "--link fast|braid: a link must be written bandwidth,latency or unlimited but was fast;",
        "--output-limit lots|braid: --output-limit must be a number of bytes such as 500KB or 4MiB"
            + " but was lots; the default is 4MiB",
        "--output-limit 1KiB|braid: --output-limit must be 16KiB to 1GiB but was 1024 bytes; the"
            + " default is 4MiB",
        "--launcher ssh|braid: --launcher must be local, slurm, mpi or attach but was ssh",
        "--launcher attach|braid: --launcher attach needs the number of ranks; try -n 4",
        "--launcher attach -n 0|braid: -n must be a number of ranks, 1..4096, but was \"0\"; try 4",
        "--launcher attach -n 2 --listen no.such.name|braid: --listen must be an address of this"
            + " host but no.such.name is unknown; try 0.0.0.0",
        "--launcher attach -n 2 --listen 127.0.0.1:x|braid: the port of --listen must be 0..65535"
            + " but was x; leave it out for a free one",
        "--launcher attach -n 2 --join-timeout soon|braid: --join-timeout must be a time of 1 s",
        "--launcher attach -n 2 --launcher-options=-v|braid: --launcher-options has no effect with"
            + " --launcher attach; try --launcher slurm or mpi",
        "--launcher attach -n 2 --share-gpus --backend host|braid: --share-gpus needs GPUs but"
            + " --backend is host; leave one of them out",
        "--listen 127.0.0.1|braid: --listen has no effect with --launcher local; try --launcher"
            + " attach, slurm or mpi",
        "--join braid.join|braid: --join has no effect with --launcher local; try --launcher",
        "--timeout 0|braid: --timeout must be a time over 0, such as 90s, 10m or 1h, but was 0; try --timeout"
            + " 10m",
        "--cell-timeout x|braid: --cell-timeout must be a time over 0, such as 90s, 10m or 1h, but was x;",
        "--timeout nan|braid: --timeout must be a time over 0, such as 90s, 10m or 1h, but was nan;",
        "--until-decided soon|braid: --until-decided must be a time of 1 s or more, such as 90s,"
            + " 10m or 1h, but was soon; try --until-decided 10m",
        "--until-decided 0|braid: --until-decided must be a time of 1 s or more, such as 90s, 10m"
            + " or 1h, but was 0;",
        "--summary none/s.md|braid: --summary must be a file to write but none/s.md is in a"
            + " directory that does not exist; try mkdir -p",
        "-p split=4|braid: parameter split (-p) must be declared in the cell of",
        "-p m=x|braid: parameter m is declared int but was \"x\" (-p); try -p m=4",
        "-p m|braid: -p must be NAME=VALUE but was \"m\"; try -p m=VALUE",
        "-f none.yaml|braid: -f must name a YAML file but none.yaml does not exist; check the path",
        "-y [|braid: -y must be YAML but is not: line 1 column 2:",
        "--junit none/j.xml|braid: --junit must be a file to write but none/j.xml is in a directory"
            + " that does not exist; try mkdir -p",
        "--repot r|braid: --repot is not an option of braid run; did you mean --report?",
        "-o x|braid: option '--output' (OUT.ipynb) should be specified only once",
        "second.ipynb third.ipynb|braid: notebook must be a file but second.ipynb does not exist;"
            + " check the path",
        "second.ipynb|braid: the output must be named once but second.ipynb does not exist and so"
            + " is the output of ",
        "--memory rdma|braid: a memory kind must be one of auto, native, ipc, nccl, nvshmem but was"
            + " rdma",
        "--backend host --memory nccl|braid: --memory nccl needs CUDA but the backend is host (set"
            + " by --backend); choose native or auto",
        "--cwd none|braid: --cwd must be a directory but none does not exist; check the path",
        "--report none/r.html|braid: --report must be a file to write but none/r.html is in a"
            + " directory that does not exist; try mkdir -p",
        "--check|braid: --check compares with the outputs stored in the notebook but ",
      })
  void aMistakeIsOneLine(String options, String message) {
    var ran = run(options.split(" "));
    assertThat(ran.err()).startsWith(message).hasLineCount(1);
    assertThat(ran.out()).isEmpty();
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(directory.toFile().list()).containsExactly("tune.ipynb");
  }

  /// A FIFO can be read once, but a notebook is saved after every cell.
  @ParameterizedTest
  @ValueSource(strings = {"-o", "--junit", "--report"})
  void aFifoIsNotWritten(String option) throws Exception {
    var fifo = directory.resolve("fifo");
    assertThat(new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor()).isZero();
    var ran = Ran.here("run", notebook.toString(), option, fifo.toString());
    assertThat(ran.err())
        .isEqualTo(
            "braid: %s must be a file to write but %s is neither a file nor a character device; name a file\n"
                .formatted(option, fifo));
    assertThat(ran.exitCode()).isEqualTo(2);
  }

  /// A device discards an output notebook.
  @Test
  void outputGoesIntoADevice() throws Exception {
    var device = Path.of("/dev/null");
    var before = Files.getAttribute(device, "unix:ino");
    var ran = Ran.here("run", notebook.toString(), "-n", "1", "-o", device.toString());
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(Files.getAttribute(device, "unix:ino")).isEqualTo(before);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{\"cells\":|must be JSON but is not: line 1 column 10 ($.cells): End of input;",
        "{\"nbformat\": 3, \"nbformat_minor\": 0}|nbformat must be 4 but was 3; convert it:",
        "{\"nbformat\": 4, \"nbformat_minor\": 5, \"cells\": [], \"metadata\": {\"kernelspec\":"
            + " {\"name\": \"ir\", \"language\": \"R\"}}}|language must be java but was r (kernel"
            + " ir);",
      })
  void aNotebookOfAnotherLanguageIsRefused(String json, String message) throws IOException {
    Files.writeString(notebook, json);
    var ran = run();
    assertThat(ran.err()).startsWith("braid: " + notebook).contains(message).hasLineCount(1);
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(directory.toFile().list()).containsExactly("tune.ipynb");
  }

  @Test
  void aMistypedCommandGetsASuggestion() {
    var ran = Ran.here("rnu");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .startsWith(
            "braid: command must be one of run, exec, rerun, tune, calibrate, runs, compare, lab, rank, kernel, doctor")
        .endsWith("but was rnu; did you mean run? (see braid --help)\n");
    assertThat(Ran.here().err()).isEqualTo("braid: a command is missing (see braid --help)\n");
  }

  @Test
  void aStackTraceIsPrintedOnlyOnRequest() {
    assertThat(Ran.here("-v", "run", "none.ipynb").err()).contains("\tat braid.launcher");
    assertThat(Ran.here("run", "-v", "none.ipynb").err()).contains("\tat braid.launcher");
    assertThat(Ran.here("run", "none.ipynb").err()).doesNotContain("\tat ");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "run",
        "rerun",
        "runs",
        "compare",
        "lab",
        "doctor",
        "selftest",
        "runs prune",
        "bundle",
        "completion",
        "man",
        "kernel install",
        "kernel list",
        "kernel remove"
      })
  void everyCommandExplainsItself(String command) {
    var ran = Ran.here((command + " --help").split(" "));
    assertThat(ran.exitCode()).isZero();
    assertThat(ran.out()).startsWith("Usage: braid " + command);
  }

  @Test
  void helpsWithACommand() {
    assertThat(Ran.here("help", "run").out()).isEqualTo(Ran.here("run", "--help").out());
    assertThat(Ran.here("help").out()).isEqualTo(Ran.here("--help").out());
  }

  /// Bash itself completes a command and an option by the script.
  @ParameterizedTest
  @CsvSource({
    "sel,selftest",
    "run --cell,--cell-timeout",
    "run --cw,--cwd",
    "run --mem,--memory",
    "run --log,--log-output",
    "ma,man"
  })
  void bashCompletesByTheScript(String typed, String completed) throws Exception {
    var script = directory.resolve("completion.bash");
    Files.writeString(script, Ran.here("completion", "bash").out());
    var words = ("braid " + typed).split(" ");
    var bash =
        new ProcessBuilder(
                "bash",
                "-c",
                """
                source %s
                COMP_WORDS=(%s); COMP_CWORD=%d; COMP_LINE="braid %s"; COMP_POINT=${#COMP_LINE}
                _complete_braid
                printf '%%s\n' "${COMPREPLY[@]}"
                """
                    .formatted(script, String.join(" ", words), words.length - 1, typed))
            .redirectErrorStream(true)
            .start();
    var printed = new String(bash.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(printed.lines().map(String::strip)).contains(completed);
    assertThat(Ran.here("completion", "zsh").out()).contains("bashcompinit");
    assertThat(Ran.here("completion", "fish").err())
        .isEqualTo(
            "braid: the shell must be bash or zsh but was fish; try braid completion bash\n");
  }

  /// groff reports unknown macros and escapes.
  @Test
  void manualPagesArePrinted() throws Exception {
    var pages = ManCommand.pages();
    assertThat(pages).containsKeys("braid.1", "braid-run.1", "braid-kernel-install.1");
    assertThat(pages).doesNotContainKeys("braid-help.1", "braid-kernel-start.1");
    assertThat(Ran.here("man", "run").out()).isEqualTo(pages.get("braid-run.1"));
    assertThat(Ran.here("man").out()).isEqualTo(pages.get("braid.1"));
    assertThat(Ran.here("man", "docter").err())
        .isEqualTo(
            "braid: man needs a command of braid but there is no braid-docter; did you mean"
                + " braid-doctor?\n");
    assertThat(pages.get("braid-run.1"))
        .contains(".SH EXIT STATUS\n", "\\fB\\-n, \\-\\-ranks RANKS\\fR\n", ".SH EXAMPLES\n.nf\n");
    var options =
        Objects.requireNonNull(Braid.commandLine().getSubcommands().get("run"))
            .getCommandSpec()
            .optionsMap()
            .keySet();
    for (var option : options) {
      assertThat(pages.get("braid-run.1")).contains(option.replace("-", "\\-"));
    }
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/groff")), "groff is not installed");
    for (var page : pages.entrySet()) {
      var file = Files.writeString(directory.resolve(page.getKey()), page.getValue());
      var groff =
          new ProcessBuilder("groff", "-man", "-ww", "-Tascii", "-P-cbou", file.toString())
              .redirectErrorStream(true)
              .start();
      var text = new String(groff.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(text).as(page.getKey()).contains("SYNOPSIS").doesNotContain("warning", "error:");
      assertThat(groff.waitFor()).isZero();
    }
  }

  @Test
  void documentsItsExitCodes() {
    assertThat(Ran.here("run", "--help").out())
        .contains("Exit codes:", " 138 ", " 130 ", " 4 ", " 3 ", "Examples:", "-p splits=1,2,4");
  }

  @Test
  void theSelfTestRuns() throws IOException {
    var found = directory.resolve("found.json");
    var record = directory.resolve("record.json");
    var ran =
        Ran.here(
            "selftest",
            "--record",
            record.toString(),
            "-n",
            "2",
            "--backend",
            "host",
            "--memory",
            "native",
            "--quick",
            "--random",
            "5",
            "--seed",
            "42",
            "--json",
            found.toString());
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(JsonParser.parseString(Files.readString(record)).getAsJsonObject().keySet())
        .contains("date", "ranks", "quick", "groups")
        .doesNotContain("ways", "gpu");
    assertThat(ran.err())
        .startsWith(
            """
            braid selftest: on 2 ranks, backend host (set by --backend)
            braid selftest: --seed 42 determines 5 random programs and the cases of attention
            """)
        .contains("braid selftest: all-gather-gemm in native memory\n")
        .doesNotContain("WRONG");
    assertThat(ran.out())
        .startsWith("ok             all-gather-gemm ")
        .containsPattern(
            "\nok +random programs +- +- +native +- +5 cases; seed 42: \\d+ pipelines, ")
        .contains(
            "\nrandom   5 programs from --seed 42: 5 right, 0 wrong\nselftest host, 2 ranks: ")
        .containsPattern("\nselftest host, 2 ranks: \\d+ ways right \\(\\d+ cases\\), 0 wrong, ")
        .endsWith("\njson     " + found + "\nrecord   " + record + "\n");
    assertThat(json(found).get("ok").getAsBoolean()).isTrue();
    assertThat(json(found).get("ranks").getAsInt()).isEqualTo(2);
  }

  @Test
  void theSelfTestRunsOnlyNamedSubjects() {
    var ran =
        Ran.here(
            "selftest", "-n", "2", "--backend", "host", "--quick", "--only", "barrier; to-all");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out().lines().filter(line -> line.startsWith("ok ")))
        .isNotEmpty()
        .allMatch(line -> line.matches("ok +(barrier|all-to-all|all-to-all barrier) .*"));
    var nothing = Ran.here("selftest", "-n", "1", "--backend", "host", "--only", "telepathy");
    assertThat(nothing.exitCode()).isEqualTo(2);
    assertThat(nothing.err())
        .startsWith("braid: --only must be part of a subject, all-gather-gemm, ")
        .contains("attention-backward", "but was telepathy; did you mean ")
        .hasLineCount(1);
  }

  @Test
  void testsNothingThatIsNotThere() {
    var ran = Ran.here("selftest", "-n", "1", "--backend", "host", "--memory", "nccl");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.out())
        .startsWith("not available  ")
        .contains("memory kind nccl needs CUDA", "nothing requested is available")
        .contains("selftest host, 1 rank: 0 ways right (0 cases), 0 wrong, 4 not available\n");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "selftest --memory auto|braid: --memory must be one of native, ipc, nccl, nvshmem but was"
            + " auto; leave it out for all",
        "selftest --memory ncc|braid: a memory kind must be one of auto, native, ipc, nccl, nvshmem"
            + " but was ncc",
        "selftest --random -1|braid: --random must be a number of programs, 0 or more, but was -1;"
            + " try --random 200",
        "selftest --random abc|braid: --random must be a number of programs, 0 or more, but was"
            + " abc; try --random 200",
        "selftest --random 9999999999|braid: --random must be a number of programs, 0 or more, but"
            + " was 9999999999; try --random 200",
        "selftest --random 5 --seed x|braid: --seed must be a whole number but was x; try --seed"
            + " 42",
        "selftest --only a$b|braid: --only must be texts of letters, digits, spaces, ' : and - but"
            + " was a$b; try --only attention",
        "selftest --timeout 0|braid: --timeout must be a time over 0, such as 90s, 10m or 1h, but was 0; try"
            + " --timeout 10m",
        "exec None.java -np 2|braid: -np is not an option of braid; did you mean -n?",
        "help compar|braid: command must be one of run, exec, rerun,",
        "selftest --record none/r.json|braid: --record must be a file to write but none/r.json is"
            + " in a directory that does not exist; try mkdir -p",
        "selftest --json none/s.json|braid: --json must be a file to write but none/s.json is in a"
            + " directory that does not exist; try mkdir -p",
        "bundle -o none/b.tar.xz|braid: -o must be a file to write but none/b.tar.xz is in a"
            + " directory that does not exist; try mkdir -p",
      })
  void aMistakeIsPrintedBeforeTheRunBegins(String command, String message) {
    var ran = Ran.here(command.split(" "));
    assertThat(ran.err()).startsWith(message).hasLineCount(1);
    assertThat(ran.exitCode()).isEqualTo(2);
  }

  private static JsonObject json(Path file) throws IOException {
    return JsonParser.parseString(Files.readString(file)).getAsJsonObject();
  }

  @Test
  void installsListsAndRemovesAKernelspec() throws IOException {
    var prefix = directory.resolve("prefix");
    var kernel = prefix.resolve("share/jupyter/kernels/braid-2");
    String[] place = {"--prefix", prefix.toString(), "--name", "braid-2"};

    var installed =
        Ran.here(
            "kernel",
            "install",
            "--prefix",
            place[1],
            "--name",
            place[3],
            "-n",
            "2",
            "--output-limit",
            "8MiB");
    assertThat(installed.err()).isEmpty();
    assertThat(installed.out()).startsWith("installed \"Braid (2 ranks)\" in " + kernel + "\n");
    var spec = json(kernel.resolve("kernel.json"));
    assertThat(spec.get("language").getAsString()).isEqualTo("java");
    assertThat(spec.get("interrupt_mode").getAsString()).isEqualTo("message");
    assertThat(spec.get("kernel_protocol_version").getAsString()).isEqualTo("5.6");
    assertThat(spec.getAsJsonObject("metadata").get("supported_encryption").toString())
        .isEqualTo("[\"curve\"]");
    assertThat(spec.get("argv").toString())
        .endsWith(
            "\"kernel\",\"start\",\"{connection_file}\",\"-n\",\"2\",\"--output-limit\",\"8MiB\"]");
    assertThat(Path.of(spec.getAsJsonArray("argv").get(0).getAsString())).isAbsolute().exists();
    assertThat(ImageIO.read(kernel.resolve("logo-64x64.png").toFile()).getWidth()).isEqualTo(64);
    assertThat(ImageIO.read(kernel.resolve("logo-32x32.png").toFile()).getWidth()).isEqualTo(32);

    assertThat(Ran.here("kernel", "install", "--prefix", place[1], "--name", place[3]).exitCode())
        .as("again, in its place")
        .isZero();
    assertThat(json(kernel.resolve("kernel.json")).get("display_name").getAsString())
        .isEqualTo("Braid");

    var removed = Ran.here("kernel", "remove", "--prefix", place[1], "--name", place[3]);
    assertThat(removed.out()).isEqualTo("removed " + kernel + "\n");
    assertThat(kernel).doesNotExist();
    var again = Ran.here("kernel", "remove", "--prefix", place[1], "--name", place[3]);
    assertThat(again.exitCode()).isEqualTo(2);
    assertThat(again.err())
        .isEqualTo(
            "braid: kernel must be one that Braid installed but "
                + kernel
                + " holds none; see braid kernel list\n");
  }

  @Test
  void kernelsOfOthersStay() throws IOException {
    var kernel = Files.createDirectories(directory.resolve("share/jupyter/kernels/python3"));
    Files.writeString(kernel.resolve("kernel.json"), "{\"argv\": [], \"display_name\": \"P\"}");
    var prefix = directory.toString();
    var installed = Ran.here("kernel", "install", "--prefix", prefix, "--name", "python3");
    assertThat(installed.exitCode()).isEqualTo(2);
    assertThat(installed.err())
        .isEqualTo(
            "braid: "
                + kernel
                + " must be free or Braid's own but holds another kernel; choose another --name\n");
    assertThat(Ran.here("kernel", "remove", "--prefix", prefix, "--name", "python3").exitCode())
        .isEqualTo(2);
    assertThat(kernel.resolve("kernel.json")).exists();
  }

  @Test
  void aKernelThatCouldNotStartIsRefused() {
    var prefix = directory.toString();
    assertThat(Ran.here("kernel", "install", "--prefix", prefix, "-n", "0").err())
        .startsWith("braid: -n must be 1..");
    assertThat(Ran.here("kernel", "install", "--prefix", prefix, "--name", "a b").err())
        .isEqualTo(
            "braid: --name must be letters, digits, ., _ and - but was \"a b\"; try --name"
                + " braid\n");
    assertThat(Ran.here("kernel", "install", "--prefix", prefix, "--user").err())
        .startsWith("braid: --user and --prefix exclude each other but both were set;");
    assertThat(directory.resolve("share")).doesNotExist();
  }

  @Test
  void examinesTheMachine() {
    var text = Ran.here("doctor");
    assertThat(text.out())
        .contains("  JDK ", "  OpenBLAS ", "  /dev/shm ", "  backend ", "  GPUs ", "  multicast ");
    assertThat(text.out()).contains("\n  all-gather-gemm ", "\nCollectives:\n");
    var ran = Ran.here("doctor", "--json");
    var json = JsonParser.parseString(ran.out()).getAsJsonObject();
    assertThat(json.get("doctor").getAsInt()).isEqualTo(1);
    var ids = new ArrayList<String>();
    for (var element : json.getAsJsonArray("checks")) {
      var check = element.getAsJsonObject();
      ids.add(check.get("id").getAsString());
      assertThat(check.keySet()).containsExactly("id", "title", "state", "value", "remedy");
      assertThat(check.get("state").getAsString()).isIn("ok", "absent", "missing");
    }
    assertThat(ids)
        .containsExactly(
            "jdk",
            "cores",
            "memory",
            "ranks",
            "backend",
            "shared_memory",
            "link",
            "charts",
            "openblas",
            "cuda_driver",
            "cuda_runtime",
            "cublas_lt",
            "nvrtc",
            "nccl",
            "cupti",
            "cudnn",
            "nvml",
            "nvshmem",
            "cublas_mp",
            "ucx",
            "nvtx",
            "gpus",
            "gpu_driver",
            "gpu_links",
            "cuda",
            "memory_native",
            "memory_ipc",
            "memory_nccl",
            "memory_nvshmem",
            "multicast",
            "attention",
            "cache",
            "jupyter",
            "kernelspecs");
    var backend = BackendKind.parse(json.get("backend").getAsString(), "backend");
    assertThat(backend).isIn(BackendKind.HOST, BackendKind.CUDA);
    assertThat(json.getAsJsonArray("overlaps")).hasSize(Capabilities.of(backend).size());
    var first = json.getAsJsonArray("overlaps").get(0).getAsJsonObject();
    assertThat(first.keySet())
        .containsExactly(
            "pattern", "method", "transport", "memory", "supported", "engine", "note", "spans");
    assertThat(first.get("pattern").getAsString()).isEqualTo("all-gather-gemm");
    assertThat(first.get("supported").getAsBoolean()).isTrue();
    assertThat(json.getAsJsonArray("attention")).hasSize(Capabilities.attentionOf(backend).size());
    assertThat(json.getAsJsonArray("collectives"))
        .hasSize(Capabilities.collectivesOf(backend).size());
    assertThat(json.getAsJsonArray("collectives").get(0).getAsJsonObject().keySet())
        .containsExactly(
            "collective", "transport", "memory", "supported", "engine", "note", "spans");
    assertThat(json.get("ok").getAsBoolean()).isTrue();
    assertThat(ran.exitCode()).isZero();
  }
}
