package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Runs each sample as its comment says, and compares what it prints with the lines in its comment.
@Execution(ExecutionMode.CONCURRENT)
class SamplesTest {
  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
  private static final Path SAMPLES = ROOT.resolve("workbench-lib/src/samples");
  private static final Path MAVEN = SAMPLES.resolve("maven");
  private static final Pattern PRINTED = Pattern.compile("(?m)^///? +\\| (.*)$");
  private static final Pattern RANKS = Pattern.compile("braid exec \\S+ -n (\\d+)");
  private static final Pattern NUMBER = Pattern.compile("(?m)^///? (\\d\\d)\\. ");
  private static final Pattern COORDINATES =
      Pattern.compile(
          "<groupId>(.*)</groupId>\\s*<artifactId>(.*)</artifactId>\\s*<version>(.*)</version>");

  @TempDir Path directory;

  static List<Path> samples() throws IOException {
    try (var files = Files.list(SAMPLES.resolve("java"))) {
      var tuned = MAVEN.resolve("src/main/java/tuned/Tuned.java");
      return Stream.concat(files.sorted(), Stream.of(tuned)).toList();
    }
  }

  @ParameterizedTest
  @MethodSource("samples")
  void aSamplePrintsTheLinesInItsComment(Path sample) throws Exception {
    var source = Files.readString(sample);
    var printed = PRINTED.matcher(source).results().map(line -> line.group(1)).toList();
    assertThat(printed).isNotEmpty();

    var ranks = RANKS.matcher(source);
    var ran = ranks.find() ? exec(sample, ranks.group(1)) : java(sample);
    assertThat(ran.exitCode()).as(ran.out() + ran.err()).isZero();
    var lines = ran.out().lines().toList();
    for (var line : printed) {
      var pattern =
          Arrays.stream(line.split("…", -1)).map(Pattern::quote).collect(Collectors.joining(".*"));
      assertThat(lines).as(line).anyMatch(each -> each.matches(pattern));
    }
  }

  private Ran exec(Path sample, String ranks) throws Exception {
    return Ran.apart(
        directory,
        Map.of(),
        (process, line) -> {},
        "exec",
        sample.toString(),
        "-n",
        ranks,
        "--link",
        "unlimited");
  }

  private Ran java(Path sample) throws Exception {
    var process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Dslf4j.internal.verbosity=ERROR",
                "-cp",
                System.getProperty("java.class.path"),
                sample.toString(),
                "2")
            .directory(directory.toFile())
            .redirectErrorStream(true)
            .start();
    try (var output = process.getInputStream()) {
      var text = new String(output.readAllBytes(), StandardCharsets.UTF_8);
      return new Ran(process.waitFor(), text, "");
    }
  }

  @Test
  void samplesAreNumberedAndLinkedFromTheGuide() throws IOException {
    var samples = samples();
    var guide = Files.readString(ROOT.resolve("docs/guide/getting_started.md"));
    for (int i = 0; i < samples.size(); i++) {
      var sample = samples.get(i);
      assertThat(NUMBER.matcher(Files.readString(sample)).results().map(first -> first.group(1)))
          .as("%s", sample)
          .containsExactly("%02d".formatted(i + 1));
      assertThat(guide).contains("../../" + ROOT.relativize(sample));
    }
  }

  @Test
  void theMavenSampleDependsOnThisVersionOfTheLibrary() throws IOException {
    var library = Files.readString(SAMPLES.resolveSibling("../pom.xml").normalize());
    var parent = COORDINATES.matcher(library);
    assertThat(parent.find()).isTrue();
    assertThat(library).contains("<artifactId>braid-workbench-lib</artifactId>");
    var dependencies = Files.readString(MAVEN.resolve("pom.xml"));
    assertThat(COORDINATES.matcher(dependencies).results().map(SamplesTest::coordinates))
        .contains(List.of(parent.group(1), "braid-workbench-lib", parent.group(3)));
  }

  private static List<String> coordinates(MatchResult found) {
    return List.of(found.group(1), found.group(2), found.group(3));
  }
}
