package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.MagicName;
import braid.launcher.cell.Outcome;
import braid.launcher.session.magic.MavenJars;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Tests lines that begin with `%` on two real ranks.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class MagicsTest {
  @TempDir static Path home;

  private Session session;
  private Recorded output = new Recorded();

  @BeforeAll
  void start() {
    session = Session.start(new SessionOptions(2, BackendKind.HOST, Optional.empty(), home));
  }

  @AfterAll
  void close() {
    session.close();
  }

  @BeforeEach
  void fresh() {
    output = new Recorded();
  }

  private Outcome run(String source) {
    return session.run(new Cell("cell 1", source), output);
  }

  private String result(String source) {
    var outcome = run(source);
    assertThat(outcome.failure()).isEmpty();
    return outcome.result().orElseThrow().text();
  }

  @Test
  void aFifoThatNobodyWritesIsNotLoaded() throws Exception {
    var fifo = home.resolve("fifo");
    assertThat(new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor()).isZero();
    assertThat(failure("%load " + fifo).message()).contains(" is a device, a pipe or a socket");
    assertThat(failure("%jars " + fifo).message()).contains(" is a device, a pipe or a socket");
  }

  @Test
  void aFileThatIsTooLargeForACellIsNotLoaded() throws IOException {
    var large = home.resolve("Large.java");
    try (var file = new RandomAccessFile(large.toFile(), "rw")) {
      file.setLength(8L << 30);
    }
    assertThat(failure("%load " + large).message())
        .isEqualTo("%load must be given a file of at most 16 MiB but " + large + " has 8192 MiB");
  }

  /// Only jars are added to the class path: any other file would make every later cell fail.
  @Test
  void aFileThatIsNoJarIsNotAdded() throws IOException {
    var garbage = file("garbage.jar", "this is not a zip");
    assertThat(failure("%jars " + garbage).message())
        .startsWith(
            "%jars must be given jars or folders of classes but " + garbage + " is not a zip: ");
    var sources = home.resolve("sources.jar");
    try (var jar = new JarOutputStream(Files.newOutputStream(sources))) {
      jar.putNextEntry(new JarEntry("a/B.java"));
    }
    assertThat(failure("%jars " + sources).message())
        .isEqualTo(
            "%jars must be given jars or folders of classes but " + sources + " holds no class");
    assertThat(result("1 + 1")).isEqualTo("2");
  }

  private CellFailure failure(String source) {
    return run(source).failure().orElseThrow();
  }

  private String printed(String source) {
    assertThat(run(source).failure()).isEmpty();
    return output.out.toString();
  }

  private Path file(String name, String text) throws IOException {
    return Files.writeString(home.resolve(name), text);
  }

  /// Compiles a class into a folder that is on no class path.
  private Path compiled(String name, String value) throws IOException {
    var folder = Files.createDirectories(home.resolve(name));
    var source =
        Files.writeString(
            folder.resolve("Answer.java"),
            "package %s; public class Answer { public static String of() { return \"%s\"; } }"
                .formatted(name, value));
    var code =
        ToolProvider.getSystemJavaCompiler()
            .run(null, null, null, "-d", folder.toString(), source.toString());
    assertThat(code).isZero();
    return folder;
  }

  @Test
  void addedJarsReachTheCompilerAndEveryRank() throws IOException {
    var folder = compiled("infolder", "of a folder");
    var jar = home.resolve("answer.jar");
    try (var packed = new JarOutputStream(Files.newOutputStream(jar))) {
      packed.putNextEntry(new JarEntry("injar/Answer.class"));
      Files.copy(compiled("injar", "of a jar").resolve("injar/Answer.class"), packed);
    }
    assertThat(failure("infolder.Answer.of()").message()).contains("does not exist");
    assertThat(run("%jars " + folder).failure()).isEmpty();
    assertThat(run("%jars " + jar).failure()).isEmpty();
    assertThat(result("infolder.Answer.of() + world.rank()"))
        .isEqualTo("[0] of a folder0\n[1] of a folder1");
    assertThat(result("import injar.*;\nAnswer.of() + world.rank()"))
        .isEqualTo("[0] of a jar0\n[1] of a jar1");
  }

  @Test
  void helpAndCompletionAndMessagesKnowEveryMagic() {
    var help = printed("%help");
    for (var magic : MagicName.values()) {
      assertThat(help).contains("  " + magic.spelling());
      assertThat(
              session
                  .assistant()
                  .complete(magic.spelling(), magic.spelling().length())
                  .replacements())
          .contains(magic.spelling());
      assertThat(failure(magic.ofCell() ? "%%nope" : "%nope").message()).contains(magic.spelling());
    }
    assertThat(failure("%rnks").message()).startsWith("%rnks is not a magic; did you mean %ranks?");
    assertThat(failure("%%fornt").message()).contains("did you mean %%front?");
    assertThat(failure("%matplotlib inline").message())
        .isEqualTo(
            "%matplotlib is not a magic: leave this line out: tables and charts are shown without it");
    assertThat(failure("%%timeit\n1").message())
        .startsWith("%%timeit is not a magic: `%time CODE` times one line");
    assertThat(failure("%pip install numpy").message()).contains("%maven group:artifact:version");
    assertThat(failure("int n = 1;\n%%rank 0").message())
        .isEqualTo("%%rank applies to a whole cell and must stand above its code");
  }

  @Test
  void ranksAreShownWithWhereTheyAreAndHowTheyAre() {
    assertThat(result("%ranks").lines().findFirst().orElseThrow().split("\\s{2,}"))
        .containsExactly(
            "rank", "pid", "host", "device", "state", "memory", "heartbeat", "waits for");
    for (int rank = 0; rank < 2; rank++) {
      awaitRow(
          rank,
          "\\s+%d\\s+%d\\s+\\S+\\s+host\\s+idle\\s+\\d+ MiB\\s+[\\d.]+ s ago"
              .formatted(rank, session.ranks().get(rank).pid()));
    }
    run(
        "%%rank 0\n"
            + "var waiting = new Thread(() -> ProcessGroup.world().subset(\"pair\", 0,"
            + " 1).barrier()); waiting.setDaemon(true); waiting.start();");
    awaitRow(0, ".* waiting .*barrier in group `pair`");
    run("%%rank 1\nworld.subset(\"pair\", 0, 1).barrier();");
  }

  /// Waits until the table of ranks has that row: a rank that answers late is shown as it was.
  private void awaitRow(int rank, String pattern) {
    while (!result("%ranks").lines().toList().get(1 + rank).matches(pattern)) {
      Thread.onSpinWait();
    }
  }

  @Test
  void aFileIsRunAsIfItStoodThere() throws IOException {
    var shapes =
        file(
            "Shapes.java",
            """
            record Square(int side) {
              int area() { return side * side; }
            }
            new Square(6).area() + 6""");
    assertThat(result("%load " + shapes)).isEqualTo("42");
    assertThat(result("new Square(2).area()")).isEqualTo("4");
  }

  @Test
  void anErrorInALoadedFileHasFileAndLine() throws IOException {
    var broken =
        failure("%load " + file("Broken.java", "int fine = 1;\nint bad = fine + nothing;\n"));
    assertThat(broken.cause()).isEqualTo(Cause.COMPILE);
    assertThat(broken.message()).isEqualTo("Broken.java, line 2: error: cannot find symbol");
    var thrown =
        failure("int before = 1;\n%load " + file("Throws.jsh", "int n = 0;\n\nint m = 1 / n;\n"));
    assertThat(thrown.traceback())
        .startsWith("all 2 ranks failed in Throws.jsh, line 3")
        .contains("->   3  int m = 1 / n;");
    assertThat(failure("%load").message()).isEqualTo("%load wants a .java or .jsh file");
    assertThat(failure("%load " + home).message())
        .isEqualTo("%load must be given a file of Java but " + home + " is a directory");
    assertThat(failure("%load /dev/zero").message())
        .isEqualTo(
            "%load must be given a file of Java but /dev/zero is a device, a pipe or a socket");
    assertThat(failure("%load /no/such.java").message())
        .isEqualTo("%load: no such file: /no/such.java");
    assertThat(
            failure("%load " + file("Again.jsh", "%load " + home.resolve("Again.jsh"))).message())
        .isEqualTo("%load: Again.jsh loads itself");
  }

  @Test
  void declarationsAreListedWithSimpleValues() {
    run(
        "int quantity = 7; String greeting = \"hello\\n"
            + "you\"; var many = List.of(1); int twice(int n) { return 2 * n; } record Pair(int a,"
            + " int b) {}");
    run("quantity + 1");
    var listing = printed("%who");
    assertThat(listing.lines().findFirst().orElseThrow().split("\\s{2,}"))
        .containsExactly("name", "type", "value on rank 0");
    assertThat(listing.lines().map(line -> line.replaceAll("\\s{2,}", "|")))
        .contains(
            "quantity|int|7",
            "greeting|String|hello you",
            "many|List<Integer>",
            "twice()|(int)int",
            "Pair|record");
    assertThat(listing).doesNotContain("\n$").contains(" shown so far");
  }

  @Test
  void theTimeMagicTimesALineOrShowsItsUse() {
    assertThat(result("%time 6 * 7")).isEqualTo("42");
    assertThat(output.out.toString()).startsWith("ran for ");
    assertThat(failure("%time").message()).contains("%%time");
  }

  /// Adds an artifact that is in the local repository wherever Braid was built: its tests need it.
  @Test
  void artifactsOfMavenAreAddedToCompilerAndRanks() {
    assertThat(printed("%maven org.opentest4j:opentest4j:1.3.0"))
        .isEqualTo("added opentest4j-1.3.0.jar\n");
    assertThat(
            result(
                "new org.opentest4j.TestAbortedException(\"here\").getMessage() +"
                    + " Class.forName(\"org.opentest4j.TestAbortedException\").getProtectionDomain().getCodeSource().getLocation().getPath().endsWith(\".jar\")"))
        .isEqualTo("heretrue");
  }

  /// An interrupted download stays in the local repository. The program resolves to jars of this
  /// test as Maven does.
  @Test
  void aJarOfMavenThatIsNoneIsRefused() throws IOException {
    var jars = home.resolve("resolved");
    var maven =
        file(
            "maven",
            "#!/bin/sh\nfor a; do case $a in *outputFile=*) cp "
                + jars
                + " ${a#*=};; esac; done\n");
    assertThat(maven.toFile().setExecutable(true)).isTrue();
    var whole = home.resolve("whole.jar");
    try (var packed = new JarOutputStream(Files.newOutputStream(whole))) {
      packed.putNextEntry(new JarEntry("only/resources.txt"));
    }
    Files.writeString(jars, whole.toString());
    assertThat(MavenJars.of(maven.toString(), List.of("a:b:1"), () -> false))
        .containsExactly(whole);
    var broken = file("broken.jar", "half a download");
    Files.writeString(jars, whole + ":" + broken);
    assertThatThrownBy(() -> MavenJars.of(maven.toString(), List.of("a:b:1"), () -> false))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("%maven must get jars but " + broken + " is not a zip: ")
        .hasMessageEndingWith("; remove it, and Maven downloads it again");
  }

  @Test
  void aFailureOfMavenIsOneLineWithTheRemedy() {
    assertThat(failure("%maven").message()).contains("group:artifact:version");
    assertThat(failure("%maven gson").message())
        .startsWith("%maven wants group:artifact:version but got `gson`");
    assertThatThrownBy(() -> MavenJars.of("no-such-maven", List.of("a:b:1"), () -> false))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("`no-such-maven` is not on PATH")
        .hasMessageContaining("%jars");
    assertThatThrownBy(() -> MavenJars.of("mvn", List.of("braid.nowhere:nothing:1"), () -> true))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("interrupted");
  }
}
