package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cli.home.Installation;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Runs the `braid` script in environments that differ from a developer's.
@Execution(ExecutionMode.CONCURRENT)
class BraidScriptTest {
  @TempDir Path directory;

  private record Result(int exitCode, String out) {}

  /// Creates a folder with the script and this JDK, as in an unpacked bundle.
  private Path bundle(Path home) throws IOException {
    Files.createDirectories(home.resolve("lib"));
    var java = Files.createDirectories(home.resolve("jre/bin")).resolve("java");
    var real = Path.of(System.getProperty("java.home"), "bin", "java");
    Files.writeString(java, "#!/bin/sh\nexec '%s' \"$@\"\n".formatted(real));
    assertThat(java.toFile().setExecutable(true)).isTrue();
    var manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest
        .getMainAttributes()
        .put(
            Attributes.Name.CLASS_PATH,
            Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .map(entry -> Path.of(entry).toUri().toString())
                .collect(Collectors.joining(" ")));
    new JarOutputStream(Files.newOutputStream(home.resolve("lib/all.jar")), manifest).close();
    return script(home);
  }

  /// Creates a checkout with a source in each module. `mvn` on the path of `run` builds it: it
  /// makes jars with the source as content, and adds a line to `builds`.
  private Path checkout(Path home) throws IOException {
    Files.createDirectories(home);
    Files.createFile(home.resolve("pom.xml"));
    for (var module : List.of("native", "workbench-lib", "launcher")) {
      for (var sources : List.of("src/main", "src/checks")) {
        var folder = Files.createDirectories(home.resolve(module).resolve(sources));
        Files.writeString(folder.resolve("A.java"), "class A {}");
      }
      Files.createFile(home.resolve(module).resolve("pom.xml"));
    }
    var mvn = Files.createDirectories(directory.resolve("bin")).resolve("mvn");
    Files.writeString(
        mvn,
        """
        #!/bin/sh
        echo built >>%s
        eval "$DURING_BUILD"
        mkdir -p launcher/target/plain/lib
        cp launcher/src/main/A.java launcher/target/plain/lib/library.jar
        cp launcher/src/main/A.java launcher/target/plain/braid-launcher-1.jar
        cp launcher/src/main/A.java launcher/target/plain/braid-launcher-1-checks.jar
        cp launcher/src/main/A.java launcher/target/plain/braid-launcher-1-sources.jar
        """
            .formatted(builds()));
    assertThat(mvn.toFile().setExecutable(true)).isTrue();
    return script(home);
  }

  private Path builds() {
    return directory.resolve("builds");
  }

  /// Jars that a command ran from, of the output of [#echoingJdk].
  private static List<Path> jars(String out) {
    var started = out.lines().filter(line -> line.startsWith("started ")).findFirst().orElseThrow();
    var path = started.replaceAll(".* -cp (\\S+) .*", "$1");
    return Arrays.stream(path.split(":", -1)).map(Path::of).toList();
  }

  private static Path script(Path home) throws IOException {
    var script = home.resolve("braid");
    Files.copy(Installation.home().orElseThrow().resolve("braid"), script);
    return script;
  }

  private Result run(Map<String, String> environment, Path script, String... arguments)
      throws IOException, InterruptedException {
    var builder = new ProcessBuilder("bash", script.toString()).directory(directory.toFile());
    builder.command().addAll(Arrays.asList(arguments));
    builder.environment().clear();
    builder.environment().put("PATH", directory.resolve("bin") + ":/usr/bin:/bin");
    builder.environment().putAll(environment);
    var process = builder.redirectErrorStream(true).start();
    var out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Result(process.waitFor(), out);
  }

  /// Creates a JDK that prints its arguments and, if the last one is `stay`, runs until its input
  /// ends.
  private Path echoingJdk() throws IOException {
    var jdk = Files.createDirectories(directory.resolve("jdk"));
    Files.writeString(jdk.resolve("release"), "JAVA_VERSION=\"25\"\n");
    var java = Files.createDirectories(jdk.resolve("bin")).resolve("java");
    Files.writeString(java, "#!/bin/sh\necho started \"$@\"\ncase \"$*\" in *stay) cat ;; esac\n");
    assertThat(java.toFile().setExecutable(true)).isTrue();
    return jdk;
  }

  @Test
  void theScriptStartsWithoutAHome() throws Exception {
    var script = checkout(directory.resolve("home"));
    var result = run(Map.of("JAVA_HOME", echoingJdk().toString()), script, "--version");
    assertThat(result.out())
        .startsWith("braid: building (once)...\nstarted ")
        .endsWith("--version\n");
    assertThat(result.exitCode()).isZero();
  }

  @Test
  void theVariableThatChoosesACollectorIsNamed() throws Exception {
    var script = checkout(directory.resolve("home"));
    var jdk = echoingJdk().toString();
    var refused =
        run(
            Map.of("JAVA_HOME", jdk, "JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseG1GC"),
            script,
            "--version");
    assertThat(refused.exitCode()).isEqualTo(2);
    assertThat(refused.out())
        .startsWith("braid: JAVA_TOOL_OPTIONS must not choose a collector,")
        .contains("-XX:+UseG1GC; unset it (env -u JAVA_TOOL_OPTIONS ")
        .hasLineCount(1);
    var same =
        run(Map.of("JAVA_HOME", jdk, "JAVA_TOOL_OPTIONS", "-XX:+UseSerialGC"), script, "--version");
    assertThat(same.out()).contains("started ");
  }

  @Test
  void aLocaleProgramThatHangsIsEnded() throws Exception {
    var script = checkout(directory.resolve("home"));
    var bin = Files.createDirectories(directory.resolve("bin"));
    var locale = Files.writeString(bin.resolve("locale"), "#!/bin/sh\nexec sleep 1000\n");
    assertThat(locale.toFile().setExecutable(true)).isTrue();
    var result =
        run(
            Map.of("JAVA_HOME", echoingJdk().toString(), "PATH", bin + ":/usr/bin:/bin"),
            script,
            "--version");
    assertThat(result.out()).contains("started ");
  }

  @ParameterizedTest
  @CsvSource({"LC_ALL, C", "LC_ALL, POSIX", "LANG, C", "LANG, xx_XX.UTF-8", "TERM, dumb"})
  void aNotebookWithANonAsciiNameRunsInEveryLocale(String variable, String value) throws Exception {
    var script = bundle(directory.resolve("home"));
    // A shell names the file, since this JVM may be unable to.
    Files.writeString(directory.resolve("n.ipynb"), Notebooks.json(new Code("\"gr\\u00fcn\"")));
    var name = "zäh.ipynb";
    var renamed = new ProcessBuilder("bash", "-c", "mv n.ipynb $'z\\xc3\\xa4h.ipynb'");
    assertThat(renamed.directory(directory.toFile()).start().waitFor()).isZero();
    var result =
        run(
            Map.of(variable, value, "HOME", directory.toString()),
            Files.writeString(
                directory.resolve("run"),
                "exec bash '%s' run $'z\\xc3\\xa4h.ipynb' -n 1".formatted(script)));
    assertThat(result.exitCode()).as(result.out()).isZero();
    assertThat(result.out()).contains(name + ": 1 cell ran", "zäh.out.ipynb");
  }

  @Test
  void aPathThatAClassPathCannotHoldIsRefused() throws Exception {
    var script = checkout(directory.resolve("a:b"));
    var result =
        run(Map.of("JAVA_HOME", echoingJdk().toString(), "HOME", "/"), script, "--version");
    assertThat(result.exitCode()).isEqualTo(2);
    assertThat(result.out())
        .startsWith("braid: the path of Braid must not contain ':'")
        .contains("a:b; move it")
        .hasLineCount(1);
  }

  @ParameterizedTest
  @CsvSource({
    "-n 80, 'the number of open files must be at least 256 but is limited to 80; raise the limit (ulimit -n)'",
    "-u 30, 'the number of processes and threads must be at least 128 but is limited to 30; raise the limit (ulimit -u)'",
  })
  void limitsThatAreTooLowForJavaAreRefused(String limit, String line) throws Exception {
    var script = checkout(directory.resolve("home"));
    var jdk = echoingJdk();
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    // Root has no limit of processes, so another user runs it, who only needs read access.
    var user = "[ $(id -u) = 0 ] && set -- setpriv --reuid=65534 --clear-groups \"$@\"\n";
    var limited =
        Files.writeString(
            directory.resolve("limited"),
            "set -- bash '%s' --version\n%sulimit %s\nexec \"$@\"\n"
                .formatted(script, user, limit));
    var result = run(Map.of("JAVA_HOME", jdk.toString(), "HOME", "/"), limited);
    assertThat(result.out()).isEqualTo("braid: " + line + "\n");
    assertThat(result.exitCode()).isEqualTo(2);
  }

  /// The script raises the soft limit to the hard limit.
  @Test
  void raisesTheLimitOfOpenFilesByItself() throws Exception {
    var script = checkout(directory.resolve("home"));
    var limited =
        Files.writeString(
            directory.resolve("limited"),
            "ulimit -Sn 80\nexec bash '%s' --version\n".formatted(script));
    var result = run(Map.of("JAVA_HOME", echoingJdk().toString(), "HOME", "/"), limited);
    assertThat(result.out()).contains("\nstarted ");
  }

  /// Not even root may write in /sys.
  @Test
  void aReadOnlyCheckoutNamesTheUserWhoMustBuild() throws Exception {
    var home = directory.resolve("home");
    var script = checkout(home);
    var link = Files.createSymbolicLink(home.resolve("launcher/target"), Path.of("/sys/kernel"));
    var result =
        run(Map.of("JAVA_HOME", echoingJdk().toString(), "HOME", "/"), script, "--version");
    Files.delete(link);
    assertThat(result.exitCode()).isEqualTo(2);
    assertThat(result.out())
        .startsWith("braid: Braid must be built, since it never was or its sources have changed,")
        .contains(home + "/launcher/target is not writable; have its owner run " + script)
        .hasLineCount(1);
  }

  private Map<String, String> withEchoingJdk() throws IOException {
    return Map.of("JAVA_HOME", echoingJdk().toString(), "HOME", "/");
  }

  private static void change(Path home, String source) throws IOException {
    Files.writeString(home.resolve("launcher/src/main/A.java"), source);
  }

  @Test
  void aCheckoutIsBuiltAgainForItsContentNotForItsTimes() throws Exception {
    var home = directory.resolve("home");
    var script = checkout(home);
    var environment = withEchoingJdk();
    run(environment, script, "--version");
    assertThat(builds()).content().hasLineCount(1);

    var copying = new ProcessBuilder("cp", "-r", home.toString(), directory + "/copy").start();
    assertThat(copying.waitFor()).isZero();
    var copied = run(environment, directory.resolve("copy/braid"), "--version");
    assertThat(jars(copied.out()))
        .hasSize(3)
        .allMatch(jar -> jar.startsWith(directory.resolve("copy")))
        .allMatch(
            jar ->
                jar.toFile().lastModified()
                    == Instant.parse("2000-01-01T00:00:00Z").toEpochMilli());
    Files.setLastModifiedTime(
        home.resolve("launcher/src/main/A.java"), FileTime.from(Instant.now().plusSeconds(9)));
    run(environment, script, "--version");
    assertThat(builds()).content().hasLineCount(1);

    change(home, "class A { int changed; }");
    var changed = run(environment, script, "--version");
    assertThat(jars(changed.out()).getFirst()).content().contains("changed");
    Files.delete(home.resolve("native/src/checks/A.java"));
    run(environment, script, "--version");
    assertThat(builds()).content().hasLineCount(3);
  }

  @Test
  void aKilledBuildIsRepeated() throws Exception {
    var home = directory.resolve("home");
    var script = checkout(home);
    var environment = new HashMap<>(withEchoingJdk());
    var half = home.resolve("native/target/plain/classes/Half.class");
    environment.put(
        "DURING_BUILD",
        """
        mkdir -p %s; touch %s; cp -r launcher/src/main launcher/target/plain/lib
        for p in $PPID $(cut -d ' ' -f 4 /proc/$PPID/stat); do
          case "$(tr '\\0' ' ' </proc/$p/cmdline)" in bash*--version*) kill -KILL $p ;; esac
        done
        kill -KILL $$
        """
            .formatted(half.getParent(), half));
    assertThat(run(environment, script, "--version").exitCode()).isEqualTo(137);
    assertThat(half).exists();

    environment.remove("DURING_BUILD");
    var result = run(environment, script, "--version");
    assertThat(result.exitCode()).as(result.out()).isZero();
    assertThat(jars(result.out())).hasSize(3).allMatch(Files::isRegularFile);
    assertThat(half).doesNotExist();
    assertThat(builds()).content().hasLineCount(2);
  }

  @Test
  void cachesAreUsedOnlyWithTheJarsOfTheirBuild() throws Exception {
    var script = checkout(directory.resolve("home"));
    var environment = withEchoingJdk();
    run(environment, script, "--version");
    var build = directory.resolve("home/launcher/target/current");
    Files.createFile(build.resolve("front.aot"));
    assertThat(run(environment, script, "--version").out()).contains("-XX:AOTCache=");
    Files.delete(build.resolve("braid-launcher-1-checks.jar"));
    var without = run(environment, script, "--version").out();
    assertThat(without).doesNotContain("-XX:AOTCache=");
    assertThat(jars(without)).hasSize(2);
  }

  /// The build ends only when the second command has come to the lock. The second command's parent
  /// is a process that the build leaves behind. The shell waits for both commands, since Java
  /// closes a process's output when the process ends, even if others still write to it.
  @Test
  void twoCommandsAtOnceBuildOnce() throws Exception {
    var script = checkout(directory.resolve("home"));
    var second = directory.resolve("second");
    var flock =
        Files.writeString(
            directory.resolve("bin/flock"),
            "#!/bin/sh\n[ \"$1\" != 9 ] || echo >>%s/locking\nexec /usr/bin/flock \"$@\"\n"
                .formatted(directory));
    assertThat(flock.toFile().setExecutable(true)).isTrue();
    var environment = new HashMap<>(withEchoingJdk());
    environment.put(
        "DURING_BUILD",
        """
        (DURING_BUILD= bash %s --version >%2$s.out 2>&1; mv %2$s.out %2$s) &
        until [ $(wc -l <%3$s/locking) -eq 2 ]; do sleep 0.05; done
        """
            .formatted(script, second, directory));
    var both =
        Files.writeString(
            directory.resolve("both"),
            """
            bash %s --version || exit
            until [ -e %2$s ]; do sleep 0.05; done
            cat %2$s
            """
                .formatted(script, second));
    var result = run(environment, both);
    assertThat(result.exitCode()).as(result.out()).isZero();
    assertThat(result.out().lines().filter(line -> line.startsWith("started "))).hasSize(2);
    assertThat(builds()).content().hasLineCount(1);
  }

  @Test
  void sourcesThatChangeDuringABuildAreBuiltAgain() throws Exception {
    var home = directory.resolve("home");
    var script = checkout(home);
    var environment = new HashMap<>(withEchoingJdk());
    environment.put(
        "DURING_BUILD",
        "[ -e changed ] || { touch changed; echo 'class A { int late; }' >launcher/src/main/A.java; }");
    var result = run(environment, script, "--version");
    assertThat(result.out()).contains("braid: sources changed during the build\n");
    assertThat(jars(result.out()).getFirst()).content().contains("late");
    assertThat(builds()).content().hasLineCount(2);
  }

  @Test
  void aBuildStaysUntilNobodyRunsFromIt() throws Exception {
    var home = directory.resolve("home");
    var script = checkout(home);
    var environment = withEchoingJdk();
    var first = jars(run(environment, script, "--version").out());
    var builder = new ProcessBuilder("bash", script.toString(), "stay");
    builder.environment().putAll(environment);
    var session = builder.start();
    try (var out = session.inputReader()) {
      assertThat(jars(out.readLine())).isEqualTo(first);

      change(home, "class A { int second; }");
      var second = jars(run(environment, script, "--version").out());
      assertThat(first).doesNotContainAnyElementsOf(second).allMatch(Files::isRegularFile);
      session.outputWriter().close();
      assertThat(session.waitFor()).isZero();

      change(home, "class A { int third; }");
      var third = jars(run(environment, script, "--version").out());
      assertThat(first).noneMatch(Files::exists);
      assertThat(second).noneMatch(Files::exists);
      assertThat(third).allMatch(Files::isRegularFile);
      assertThat(home.resolve("launcher/target/current/library.jar")).content().contains("third");
    }
  }
}
