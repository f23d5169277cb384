package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.experiment.Manifest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Links in `runs/`, and manifests that name other runs.
@Execution(ExecutionMode.CONCURRENT)
class PruneTest {
  private static final String OLD = "20260101T000000000Z-00000a";
  private static final String NEW = "20260102T000000000Z-00000b";
  private static final String STUDY = "20260101T000001000Z-00000c";

  @TempDir Path directory;
  private Path runs;
  private CommandProcess process;

  @BeforeEach
  void start() throws IOException {
    runs = Files.createDirectories(directory.resolve("runs"));
    process = new CommandProcess(directory);
  }

  @AfterEach
  void end() throws IOException {
    process.close();
  }

  private static Path run(Path folder, String... data) throws IOException {
    Files.createDirectories(folder);
    var id = folder.getFileName().toString();
    var named =
        Arrays.stream(data).map("{\"id\": \"%s\"}"::formatted).collect(Collectors.joining(","));
    Files.writeString(
        folder.resolve(Manifest.FILE),
        """
        {"format": "%s", "id": "%s", "state": "completed", "started": "%s-%s-%sT00:00:00Z", "data": [%s]}
        """
            .formatted(
                Manifest.FORMAT,
                id,
                id.substring(0, 4),
                id.substring(4, 6),
                id.substring(6, 8),
                named));
    return folder;
  }

  private Ran prune(String keep) throws IOException {
    var ran = process.run("runs", "prune", "--keep", keep);
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    return ran;
  }

  @Test
  void aLinkedRunElsewhereStays() throws IOException {
    var elsewhere = run(directory.resolve("elsewhere").resolve(OLD));
    Files.createSymbolicLink(runs.resolve(OLD), elsewhere);
    assertThat(prune("0").out()).contains(": 0 runs");
    assertThat(elsewhere.resolve(Manifest.FILE)).isRegularFile();
    assertThat(runs.resolve(OLD)).isSymbolicLink();
  }

  @Test
  void linksInsideARunLoseNothingTheyLeadTo() throws IOException {
    var mine = Files.createDirectories(directory.resolve("mine"));
    Files.writeString(mine.resolve("file"), "kept");
    var kept = run(runs.resolve(NEW));
    var old = run(runs.resolve(OLD), STUDY);
    Files.createSymbolicLink(runs.resolve(STUDY), mine);
    Files.createSymbolicLink(old.resolve("folder"), mine);
    Files.createSymbolicLink(old.resolve("file"), mine.resolve("file"));
    Files.createSymbolicLink(old.resolve("dangling"), directory.resolve("nothing"));
    Files.createSymbolicLink(old.resolve("loop"), old);
    Files.createSymbolicLink(old.resolve("another"), kept);

    assertThat(prune("1").out()).contains("deleted  " + OLD, ": 1 run,");
    assertThat(old).doesNotExist();
    assertThat(mine.resolve("file")).hasContent("kept");
    assertThat(kept.resolve(Manifest.FILE)).isRegularFile();
    assertThat(runs.resolve(STUDY)).isSymbolicLink();
  }

  @Test
  void aLinkToARunIsNoSecondRunButCanBeNamed() throws IOException {
    run(runs.resolve(OLD));
    Files.createSymbolicLink(runs.resolve("zero"), Path.of(OLD));
    Files.createSymbolicLink(runs.resolve("self"), Path.of("self"));
    assertThat(process.run("runs").out()).hasLineCount(2);
    assertThat(process.run("runs", "zero").out()).contains(OLD);
    prune("1");
    assertThat(runs.resolve(OLD)).isDirectory();
  }

  @Test
  void aKeptRunIsNoDataOfAnOlderOne() throws IOException {
    run(runs.resolve(OLD), NEW);
    run(runs.resolve(NEW));
    assertThat(prune("1").out()).contains("deleted  " + OLD, ": 1 run,");
    assertThat(runs.resolve(OLD)).doesNotExist();
    assertThat(runs.resolve(NEW).resolve(Manifest.FILE)).isRegularFile();
  }

  @Test
  void dataThatAKeptRunNamesStays() throws IOException {
    run(runs.resolve(OLD), STUDY);
    run(runs.resolve(NEW), STUDY);
    var study = Files.createDirectories(runs.resolve(STUDY));
    prune("1");
    assertThat(study).isDirectory();
    prune("0");
    assertThat(runs).isEmptyDirectory();
  }

  @Test
  void aRunInsideAnotherKeepsBoth() throws IOException {
    run(runs.resolve(OLD));
    run(runs.resolve(OLD).resolve(NEW));
    assertThat(prune("1").out()).contains(": 0 runs");
    prune("0");
    assertThat(runs).isEmptyDirectory();
  }

  @Test
  void aLinkedFolderOfRunsIsPruned() throws IOException {
    var scratch = directory.resolve("scratch");
    run(scratch.resolve(OLD));
    Files.delete(runs);
    Files.createSymbolicLink(runs, scratch);
    assertThat(prune("0").out()).contains(": 1 run,");
    assertThat(scratch).isEmptyDirectory();
  }

  /// Escape sequences, C1 controls, line ends and overrides of direction are shown, not sent.
  @Test
  void controlCharactersOfAManifestAreShownAsEscapes() throws IOException {
    var file = run(runs.resolve(OLD)).resolve(Manifest.FILE);
    var name = "a\\u001b[2Jb\\u009b2Jc\\u202ed\\re\\nf.ipynb";
    Files.writeString(
        file,
        Files.readString(file)
            .replace("\"data\"", "\"notebook\": {\"name\": \"%s\"}, \"data\"".formatted(name)));
    var shown = "a\\u001b[2Jb\\u009b2Jc\\u202ed\\u000de";
    assertThat(process.run("runs").out()).contains(shown + "\\u000af.ipynb").hasLineCount(2);
    assertThat(process.run("runs", OLD).out()).contains(shown);
    var json = process.run("runs", OLD, "--json").out();
    assertThat(json).contains("\\u009b2J").doesNotContain("\u009b", "\u202e");
  }

  @Test
  void aPathThatNoFileCanHaveIsRefusedInOneLine() throws IOException {
    var file = run(runs.resolve(OLD)).resolve(Manifest.FILE);
    Files.writeString(
        file,
        Files.readString(file)
            .replace("\"data\"", "\"workingDirectory\": \"a\\u0000b\", \"data\""));
    for (var command : new String[] {OLD, "x\u0000y", "latest"}) {
      var ran = process.run("rerun", command);
      assertThat(ran.exitCode()).isEqualTo(2);
      assertThat(ran.err()).startsWith("braid: a path must be a name").hasLineCount(1);
    }
    var run = process.run("run", "n\u0000.ipynb");
    assertThat(run.exitCode()).isEqualTo(2);
    assertThat(run.err()).startsWith("braid: ").contains("\\u0000").hasLineCount(1);
  }
}
