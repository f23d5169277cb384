package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `braid run` of several notebooks, and its report on them.
class RunSeveralTest {
  @TempDir Path directory;
  private Path out;

  @BeforeEach
  void makeOutput() throws IOException {
    out = Files.createDirectory(directory.resolve("out"));
  }

  private Path write(String name, Code... cells) throws IOException {
    return Files.writeString(directory.resolve(name), Notebooks.json(cells));
  }

  private static Ran run(Object... arguments) {
    var all = new ArrayList<>(List.of("run", "-n", "1", "--backend", "host"));
    for (var argument : arguments) {
      all.add(argument.toString());
    }
    return Ran.here(all.toArray(String[]::new));
  }

  private Path failing() throws IOException {
    return write(
        "failing.ipynb",
        new Code("throw new IllegalStateException(\"no <workspace>\");"),
        new Code("2"));
  }

  private Path passing() throws IOException {
    return write(
        "passing.ipynb",
        new Code("int m = 1; // rows", "parameters"),
        new Code("\"m is \" + m + \" <script>alert(1)</script>\""));
  }

  @Test
  void goesOnAfterOneThatFails() throws IOException {
    var junit = directory.resolve("j.xml");
    var report = directory.resolve("r.html");
    var ran =
        run(failing(), passing(), "-o", out, "-p", "m=7", "--junit", junit, "--report", report);
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(1);
    assertThat(ran.err())
        .contains("braid: notebook 1 of 2: ", "braid: notebook 2 of 2: ", "cell 1 failed: throw");
    assertThat(ran.out())
        .contains("saved   " + out.resolve("failing.out.ipynb"))
        .contains("saved   " + out.resolve("passing.out.ipynb"))
        .containsPattern("\n2 notebooks: 1 in order, 1 failed; 4 cells in \\d+\\.\\d s\n")
        .contains("junit   " + junit + "\n", "report  " + report + "\n");
    assertThat(
            Notebook.read(out.resolve("passing.out.ipynb")).cells().getLast().outputs().toString())
        .contains("m is 7");
    assertThat(Files.readString(junit))
        .contains("<testsuites tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"1\"")
        .containsPattern("(?s)<testsuite .*<testsuite ");
    assertThat(Files.readString(report))
        .contains("<span class=\"verdict\">Failed</span> 2 notebooks")
        .contains("What went wrong", "href=\"#n1c1\"", "id=\"n1c1\"", "no &lt;workspace&gt;")
        .contains("m is 7 &lt;script&gt;alert(1)&lt;/script&gt;")
        .contains("<th>m</th><td>7</td>")
        .contains("--report " + report)
        .doesNotContain("<script", "src=\"http", "<link");
  }

  @Test
  void aRunStopsAfterAFailureOnRequest() throws IOException {
    var junit = directory.resolve("j.xml");
    var ran = run(failing(), passing(), "-o", out, "--fail-fast", "--junit", junit);
    assertThat(ran.exitCode()).isEqualTo(1);
    assertThat(ran.out())
        .contains("passing.ipynb: not run: an earlier notebook failed (--fail-fast)\n")
        .contains("2 notebooks: 0 in order, 1 failed, 1 not run; 1 cell in ");
    assertThat(out.resolve("passing.out.ipynb")).doesNotExist();
    assertThat(Files.readString(junit))
        .contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"3\"");
  }

  @Test
  void theTimeLimitIsForAllTogether() throws IOException {
    var slow = write("slow.ipynb", new Code("while (true) Thread.sleep(1);"));
    var ran = run(slow, passing(), "-o", out, "--timeout", "3");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(4);
    assertThat(ran.out())
        .contains("passing.ipynb: not run: --timeout 3 s was over before it began");
  }

  @Test
  void aRunThatCannotBeSavedNamesTheFile() throws IOException {
    var gone = Files.createDirectory(directory.resolve("gone"));
    var vanishing =
        write(
            "vanishing.ipynb",
            new Code(
                "try (var files = java.nio.file.Files.list(java.nio.file.Path.of(\""
                    + gone
                    + "\"))) { for (var f : files.toList()) java.nio.file.Files.delete(f); }"
                    + " java.nio.file.Files.delete(java.nio.file.Path.of(\""
                    + gone
                    + "\"));"),
            new Code("2"));
    var report = directory.resolve("r.html");
    var ran =
        run(
            vanishing,
            "-o",
            gone.resolve("o.ipynb"),
            "--report",
            report,
            "--junit",
            gone.resolve("j"));
    assertThat(ran.exitCode()).isEqualTo(1);
    assertThat(ran.err())
        .contains("braid: " + gone.resolve("o.ipynb") + " must be a file to write but could not be")
        .contains("braid: --junit " + gone.resolve("j") + " could not be written");
    assertThat(ran.out()).contains("1 of 2 cells ran on 1 rank", ", not saved\n");
    assertThat(Files.readString(report)).contains(">not saved</span>");
    assertThat(gone).doesNotExist();
  }

  @Test
  void eachParameterGoesWhereItIsDeclared() throws IOException {
    var ran = run(failing(), passing(), "-o", out, "-p", "n=7");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .isEqualTo(
            "braid: parameter n must be declared in a cell tagged parameters of one of the 2"
                + " notebooks, but they declare m; did you mean m?\n");
    assertThat(out.toFile().list()).isEmpty();
  }

  @Test
  void mistakesInAnyNotebookAreFoundBeforeTheFirstRuns() throws IOException {
    var passing = passing();
    var other = Files.createDirectory(directory.resolve("other")).resolve("passing.ipynb");
    Files.copy(passing, other);
    assertThat(run(passing, directory.resolve("none.ipynb"), "-o", out).err())
        .startsWith("braid: notebook must be a file but ")
        .hasLineCount(1);
    assertThat(run(passing, other, "-o", out).err())
        .startsWith("braid: notebooks of one run must have names of their own but ")
        .hasLineCount(1);
    assertThat(run(passing, failing(), "-o", directory.resolve("no")).err())
        .startsWith("braid: -o must be a directory where several notebooks are run but ")
        .hasLineCount(1);
    assertThat(run(passing, "-o", passing).err())
        .startsWith("braid: -o must be another file than the notebook but ")
        .hasLineCount(1);
    assertThat(run(passing, "-o", out.resolve("o"), "--report", out.resolve("o")).err())
        .startsWith("braid: --report must be a file of its own but ")
        .endsWith(" is the output notebook too; name another\n");
    assertThat(out.toFile().list()).isEmpty();
  }

  @Test
  void aNotebookIsComparedWithItsRecord() throws IOException {
    var recorded = out.resolve("recorded.ipynb");
    assertThat(run(passing(), "-o", recorded).exitCode()).isZero();
    var same = run(recorded, "--check", "-p", "m=3", "-o", out.resolve("again.ipynb"));
    assertThat(same.exitCode()).as(same.err()).isZero();
    assertThat(same.out()).contains(", as recorded\n");

    var notebook = Notebook.read(recorded);
    notebook.cells().getLast().clearOutputs();
    notebook.cells().getFirst().outputs().add(stdout());
    notebook.write(recorded);
    var report = directory.resolve("r.html");
    var junit = directory.resolve("j.xml");
    var ran =
        run(
            recorded,
            "--check",
            "-o",
            out.resolve("o.ipynb"),
            "--report",
            report,
            "--junit",
            junit);
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(7);
    assertThat(ran.err())
        .contains(
            "braid: " + recorded + ": cell 1: printed text: expected stdout; got none\n",
            "braid: " + recorded + ": cell 2: result: expected none; got text/plain\n");
    assertThat(ran.out()).contains(", 2 differences from its record\n");
    assertThat(Files.readString(report)).contains(">differs</span>", "<td>printed text</td>");
    assertThat(Files.readString(junit)).contains("failures=\"2\"", "type=\"Difference\"");
  }

  @Test
  void recordStoresOutputsInTheNotebookItself() throws IOException {
    var notebook = passing();
    var code = Notebook.read(notebook).codeCells().stream().map(NotebookCell::source).toList();
    for (int time = 1; time <= 2; time++) {
      var ran = run(notebook, "--record", "-o", out.resolve("o%d.ipynb".formatted(time)));
      assertThat(ran.exitCode()).as(ran.err()).isZero();
      var stored = Notebook.read(notebook);
      assertThat(stored.codeCells()).extracting(NotebookCell::source).isEqualTo(code);
      assertThat(stored.cells())
          .filteredOn(NotebookCell::isMarkdown)
          .singleElement()
          .satisfies(
              cell ->
                  assertThat(cell.source())
                      .matches("\\*Outputs recorded on .* by Braid .*: 1 rank, host backend.*"));
      assertThat(stored.metadata().has("papermill")).as("times of the run").isFalse();
    }
    assertThat(Notebook.read(out.resolve("o2.ipynb")).cells())
        .as("outputs of the run, not recorded ones")
        .noneMatch(NotebookCell::isMarkdown);
    var checked = run(notebook, "--check", "-o", out.resolve("checked.ipynb"));
    assertThat(checked.exitCode()).as(checked.err()).isZero();
    assertThat(checked.out()).contains(", as recorded\n");
  }

  @Test
  void recordKeepsTheNotebookOfAFailedRun() throws IOException {
    var notebook = failing();
    var before = Files.readString(notebook);
    assertThat(run(notebook, "--record", "-o", out.resolve("o.ipynb")).exitCode()).isEqualTo(1);
    assertThat(notebook).hasContent(before);
  }

  @Test
  void recordRefusesParametersAndComparisons() throws IOException {
    for (var other : List.of("--check", "-pm=3")) {
      var ran = run(passing(), "--record", other);
      assertThat(ran.exitCode()).isEqualTo(2);
      assertThat(ran.err())
          .startsWith("braid: --record stores the outputs of a notebook as it is but ")
          .hasLineCount(1);
    }
  }

  private static JsonObject stdout() {
    var output = new JsonObject();
    output.addProperty("output_type", "stream");
    output.addProperty("name", "stdout");
    output.addProperty("text", "a");
    return output;
  }

  @Test
  void theOutputOfAFailedRunIsRefused() throws IOException {
    var failing = failing();
    var left = out.resolve("left.ipynb");
    assertThat(run(failing, "-o", left).exitCode()).isEqualTo(1);
    var ran = run(left, "-o", out.resolve("again.ipynb"));
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .isEqualTo(
            "braid: %s must be a notebook or the output of a complete run but is the output of a run of %s that failed at \"throw new IllegalStateException(\"no <workspace>\");\"; it cannot be resumed: run the original again, braid run %s\n"
                .formatted(left, failing, failing));
    assertThat(out.resolve("again.ipynb")).doesNotExist();

    var whole = out.resolve("whole.ipynb");
    assertThat(run(passing(), "-o", whole, "-p", "m=5").exitCode()).isZero();
    assertThat(run(whole, "-o", out.resolve("again.ipynb")).exitCode()).isZero();
    assertThat(Notebook.read(out.resolve("again.ipynb")).cells().getLast().outputs().toString())
        .as("with the parameters of the run that left it")
        .contains("m is 5");
  }

  @Test
  void parametersAreListed() throws IOException {
    var notebook =
        write(
            "p.ipynb",
            new Code(
                """
                int m = 3840, n = 2; // rows
                // how many chunks,
                // any of them
                int[] splits = {1,
                    2};
                final var link = "1GB/s";
                Thread t = null; // a thread""",
                "parameters"));
    var ran = Ran.here("run", notebook.toString(), passing().toString(), "--help-notebook");
    assertThat(ran.exitCode()).isZero();
    assertThat(ran.err()).isEmpty();
    assertThat(ran.out())
        .isEqualTo(
            """
            %s: 5 parameters
              m       int     3840     rows
              n       int     2        rows
              splits  int[]   {1, 2}   how many chunks, any of them
              link    String  "1GB/s"
              t       Thread  null     a thread (cannot be given)
            for example -p m=4
            %s: 1 parameter
              m  int  1  rows
            for example -p m=4
            """
                .formatted(notebook, directory.resolve("passing.ipynb")));
    assertThat(Ran.here("run", failing().toString(), "--help-notebook").out())
        .endsWith(
            "failing.ipynb: no parameters; declare them in a cell tagged parameters to have them"
                + " here\n");
  }
}
