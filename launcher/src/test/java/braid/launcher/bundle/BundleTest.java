package braid.launcher.bundle;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cli.home.Installation;
import braid.launcher.experiment.Experiments;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Packs and unpacks a bundle and uses it as on a host without Java and Maven.
@Execution(ExecutionMode.CONCURRENT)
class BundleTest {
  /// Hardly compressed: real packing measures the size of a bundle.
  private static final Archive FAST = new Archive("-0", 200L << 20);

  /// Entries of the tests' class path that Braid does not have.
  private static final String OF_TESTS =
      ".*(test-classes|junit|assertj|archunit|opentest4j|apiguardian|byte-buddy|surefire).*";

  private static final List<String> PROGRAMS =
      List.of("bash", "chmod", "dirname", "readlink", "stty", "tar", "xz");

  @TempDir Path directory;

  /// It links a Java runtime and packs it, which takes minutes beside other load.
  @Test
  @Timeout(value = 15, unit = TimeUnit.MINUTES)
  void aBundleRunsWithoutJava() throws Exception {
    var steps = new ArrayList<String>();
    var archive = directory.resolve("b.tar.xz");
    var home = Installation.home().orElseThrow();
    var summary =
        new Bundle(home, classPath(), Map.of("braid.1", ".TH BRAID 1\n"), steps::add)
            .pack(archive, FAST);
    assertThat(summary).startsWith(archive + ", ").contains("tar xf b.tar.xz");
    assertThat(steps).contains("linking a Java runtime", "copying the jars");
    assertThat(run("tar", "xf", archive.toString())).isEmpty();
    var bundle = directory.resolve("braid-bundle");
    run("chmod", "-R", "a-w", bundle.toString());
    var braid =
        Files.createSymbolicLink(
            directory.resolve("elsewhere"), Path.of("braid-bundle", "bin", "braid"));

    assertThat(run(braid.toString(), "--version")).startsWith("braid ").contains("Java 25");
    assertThat(bundle.resolve("share/man/man1/braid.1")).hasContent(".TH BRAID 1");
    Pattern.compile("]\\((?!http)([^)#]+)")
        .matcher(Files.readString(bundle.resolve("README.md")))
        .results()
        .forEach(link -> assertThat(bundle.resolve(link.group(1))).exists());
    assertThat(run(braid.toString(), "doctor"))
        .contains(bundle.resolve("jre") + "\n")
        .containsPattern("OpenBLAS +ok ")
        .contains("Everything Braid needs is available.\n");
    try (var jars = Files.list(bundle.resolve("lib"))) {
      assertThat(jars.filter(jar -> jar.toString().endsWith("-checks.jar"))).hasSize(3);
    }
    assertThat(run(braid.toString(), "selftest", "-n", "1", "--quick", "--backend", "host"))
        .contains(", 0 wrong, ");
    var notebook = bundle + "/notebooks/01_first_overlap.ipynb";
    var command = new ArrayList<>(List.of(braid.toString(), "run", notebook, "-n", "2"));
    List.of("m=768", "n=512", "k=128").forEach(size -> command.addAll(List.of("-p", size)));
    assertThat(run(command.toArray(String[]::new))).containsPattern("\\d+ cells ran on 2 ranks");
    if (steps.stream().noneMatch(line -> line.contains("charts will need"))) {
      assertThat(Files.readString(bundle.resolve("jre/lib/fonts/fontconfig.properties")))
          .isEqualTo(BundledFonts.configuration());
      var latest = new Experiments(directory.resolve("runs")).find(Experiments.LATEST);
      assertThat(Files.readString(latest.directory().resolve("01_first_overlap.out.ipynb")))
          .contains("image/png", "image/svg+xml");
    }
    run("chmod", "-R", "u+w", bundle.toString());
  }

  /// Returns the tests' class path without the tests, with the jar of the launcher's checks.
  private static List<Path> classPath() throws IOException {
    var own =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
            .filter(entry -> !entry.matches(OF_TESTS))
            .map(Path::of)
            .filter(Files::exists);
    try (var built = Files.list(Path.of("target"));
        var checks = built.filter(file -> file.toString().endsWith("-checks.jar"))) {
      return Stream.concat(own, checks).toList();
    }
  }

  /// Runs a command in an environment that neither names Java nor has it on the path.
  private String run(String... command) throws IOException, InterruptedException {
    var programs = programs();
    var builder = new ProcessBuilder(command).directory(directory.toFile());
    builder.environment().clear();
    builder.environment().put("PATH", programs.toString());
    builder.environment().put("HOME", directory.toString());
    var process = builder.redirectErrorStream(true).start();
    var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as("%s said %s", Arrays.toString(command), text).isZero();
    return text;
  }

  /// Each program starts the installed one: JUnit warns about links when it cleans up.
  private Path programs() throws IOException {
    var programs = directory.resolve("programs");
    if (Files.isDirectory(programs)) {
      return programs;
    }
    Files.createDirectory(programs);
    for (var name : PROGRAMS) {
      for (var place : List.of("/usr/bin", "/bin")) {
        var program = Path.of(place, name);
        if (Files.isExecutable(program)) {
          var start = "#!/bin/sh\nexec %s \"$@\"\n".formatted(program);
          var file = Files.writeString(programs.resolve(name), start);
          assertThat(file.toFile().setExecutable(true)).isTrue();
        }
      }
    }
    return programs;
  }
}
