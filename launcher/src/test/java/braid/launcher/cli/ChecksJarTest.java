package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The self-test, soak and benchmarks are in jars of their own, without which everything else runs.
class ChecksJarTest {
  private static final Path ROOT = Path.of("..");

  @TempDir Path directory;

  /// Entries of the tests' class path without tests and without the checks of any module.
  private static List<String> product() {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
        .filter(entry -> !entry.matches(".*(test-classes|-checks\\.jar).*"))
        .toList();
  }

  private static Path target(String module, String name) {
    return ROOT.resolve(module).resolve("target").resolve(name).toAbsolutePath().normalize();
  }

  private Ran run(List<String> classPath, String... arguments) throws Exception {
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-cp", String.join(File.pathSeparator, classPath)));
    command.add(Braid.class.getName());
    command.addAll(List.of(arguments));
    var out = directory.resolve("out").toFile();
    var err = directory.resolve("err").toFile();
    var process =
        new ProcessBuilder(command)
            .directory(directory.toFile())
            .redirectOutput(out)
            .redirectError(err)
            .start();
    int exitCode = process.waitFor();
    return new Ran(exitCode, Files.readString(out.toPath()), Files.readString(err.toPath()));
  }

  @ParameterizedTest
  @ValueSource(strings = {"selftest -n 2 --quick", "soak --help", "bench front --starts 1"})
  void aMissingJarIsNamedInOneLine(String command) throws Exception {
    var ran = run(product(), command.split(" ", -1));
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.out()).isEmpty();
    assertThat(ran.err())
        .isEqualTo(
            "braid: %s needs braid-launcher-development-checks.jar, which is not installed; build it with mvn -DskipTests package in a checkout and put it beside the other jars of Braid\n"
                .formatted(command.replaceAll(" .*", "")));
  }

  @ParameterizedTest
  @CsvSource({"workbench-lib, launcher", "native, launcher workbench-lib"})
  void theJarThatOthersNeedIsNamed(String missing, String present) throws Exception {
    var classPath = new ArrayList<>(product());
    for (var module : present.split(" ", -1)) {
      classPath.add(target(module, "checks-classes").toString());
    }
    assertThat(run(classPath, "selftest", "--quick").err())
        .startsWith("braid: selftest needs braid-%s-development-checks.jar, ".formatted(missing));
  }

  @Test
  void aNotebookRunsWithoutTheChecks() throws Exception {
    var notebook =
        """
        {"cells": [{"cell_type": "code", "id": "a", "metadata": {}, "execution_count": null,
          "outputs": [], "source": "System.out.println(6 * 7);"}],
         "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        """;
    Files.writeString(directory.resolve("a.ipynb"), notebook);
    var ran = run(product(), "run", "a.ipynb", "-n", "1", "--backend", "host");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out() + ran.err()).contains("1 cell ran on 1 rank");
    assertThat(run(product(), "--help").out())
        .containsPattern("selftest +Needs braid-launcher-development-checks.jar");
  }

  @ParameterizedTest
  @ValueSource(strings = {"native", "workbench-lib", "launcher"})
  void productAndChecksShareNoClass(String module) throws IOException {
    var sources = ROOT.resolve(module).resolve("src/checks/java");
    List<String> checks;
    try (var files = Files.walk(sources)) {
      checks =
          files
              .map(file -> sources.relativize(file).toString())
              .filter(file -> file.endsWith(".java") && !file.endsWith("package-info.java"))
              .map(file -> file.replace(".java", ".class"))
              .toList();
    }
    assertThat(checks).isNotEmpty();
    assertThat(checks)
        .noneMatch(type -> Files.exists(target(module, "classes").resolve(type)))
        .allMatch(type -> Files.exists(target(module, "checks-classes").resolve(type)));
    assertThat(entries(module)).containsAll(checks);
    var others =
        entries(module).stream()
            .filter(entry -> entry.endsWith(".class"))
            .filter(entry -> Files.exists(target(module, "classes").resolve(entry)))
            .filter(entry -> !entry.endsWith("package-info.class"))
            .toList();
    assertThat(others).isEmpty();
  }

  /// Returns the names in the jar of a module's checks, which is built before its tests.
  private static List<String> entries(String module) throws IOException {
    try (var files = Files.list(target(module, ""));
        var jars = files.filter(file -> file.toString().endsWith("-checks.jar"))) {
      var jar = jars.toList();
      assertThat(jar).hasSize(1);
      try (var zip = new ZipFile(jar.getFirst().toFile(), StandardCharsets.UTF_8)) {
        return zip.stream().map(entry -> entry.getName()).toList();
      }
    }
  }
}
