package braid.launcher.session.magic;

import braid.model.BraidException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.ZipFile;

/// `%maven`: jars of artifacts and their dependencies, resolved by Maven.
public final class MavenJars {
  /// Maven prints some colours even without a terminal.
  private static final Pattern COLOURS = Pattern.compile("\\u001b\\[[0-9;]*m");

  private static final Pattern COORDINATES = Pattern.compile("[\\w.-]+:[\\w.-]+:[\\w.-]+");
  private static final String PLUGIN =
      "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:build-classpath";
  private static final long POLL_MILLIS = 50;

  private MavenJars() {}

  /// @param command Maven's program, `mvn`
  /// @param stopped true once the user interrupts
  /// @throws BraidException if they cannot be resolved, in one line with the remedy
  public static List<Path> of(String command, List<String> coordinates, BooleanSupplier stopped) {
    if (coordinates.isEmpty()) {
      throw new BraidException(
          "%maven wants group:artifact:version, such as %maven org.ejml:ejml-simple:0.44.0");
    }
    for (var wanted : coordinates) {
      if (!COORDINATES.matcher(wanted).matches()) {
        throw new BraidException(
            "%maven wants group:artifact:version but got `"
                + wanted
                + "`; try one like org.ejml:ejml-simple:0.44.0");
      }
    }
    try {
      var directory = Files.createTempDirectory("braid-maven");
      try {
        return resolve(command, coordinates, directory, stopped);
      } finally {
        for (var name : List.of("pom.xml", "jars", "log")) {
          Files.deleteIfExists(directory.resolve(name));
        }
        Files.delete(directory);
      }
    } catch (IOException e) {
      throw new BraidException("%maven could not write its project: " + e.getMessage(), e);
    }
  }

  private static List<Path> resolve(
      String command, List<String> coordinates, Path directory, BooleanSupplier stopped)
      throws IOException {
    var pom = directory.resolve("pom.xml");
    Files.writeString(
        pom,
        project(coordinates.stream().map(MavenJars::dependency).collect(Collectors.joining())));
    // Artifacts in the local repository need no network.
    var output = run(command, pom, true, stopped);
    if (!output.isEmpty()) {
      output = run(command, pom, false, stopped);
    }
    if (!output.isEmpty()) {
      throw new BraidException(
          "%maven cannot resolve "
              + String.join(" ", coordinates)
              + ": "
              + reason(output)
              + "; check the name and the network, or download the jar and use %jars");
    }
    var jars = new ArrayList<Path>();
    for (var jar : Files.readString(directory.resolve("jars")).strip().split(":", -1)) {
      if (!jar.isEmpty()) {
        jars.add(requireZip(Path.of(jar)));
      }
    }
    return jars;
  }

  /// Checks for a zip: a truncated download, which Maven does not notice, would fail every later
  /// cell. A jar without classes is fine: it may hold resources, or only name other artifacts.
  private static Path requireZip(Path jar) {
    try (var _ = new ZipFile(jar.toFile())) {
      return jar;
    } catch (IOException e) {
      throw new BraidException(
          "%maven must get jars but "
              + jar
              + " is not a zip: "
              + e.getMessage()
              + "; remove it, and Maven downloads it again",
          e);
    }
  }

  private static String project(String dependencies) {
    return """
    <project xmlns="http://maven.apache.org/POM/4.0.0">
      <modelVersion>4.0.0</modelVersion>
      <groupId>braid.cell</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
      <dependencies>%s</dependencies>
    </project>
    """
        .formatted(dependencies);
  }

  private static String dependency(String coordinates) {
    var parts = coordinates.split(":", -1);
    return "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>"
        .formatted(parts[0], parts[1], parts[2]);
  }

  /// Runs Maven; returns its output if it failed, else nothing.
  private static List<String> run(
      String command, Path pom, boolean offline, BooleanSupplier stopped) throws IOException {
    var log = pom.resolveSibling("log");
    var arguments =
        new ArrayList<>(
            List.of(
                command,
                "-q",
                "-B",
                "-f",
                pom.toString(),
                PLUGIN,
                "-Dmdep.includeScope=runtime",
                "-Dmdep.outputFile=" + pom.resolveSibling("jars")));
    if (offline) {
      arguments.add("-o");
    }
    var builder =
        new ProcessBuilder(arguments).redirectErrorStream(true).redirectOutput(log.toFile());
    int code = await(start(builder, command), stopped);
    var output = Files.readAllLines(log, StandardCharsets.UTF_8);
    return code == 0 ? List.of() : output.isEmpty() ? List.of("it exited with " + code) : output;
  }

  private static Process start(ProcessBuilder builder, String command) {
    try {
      return builder.start();
    } catch (IOException e) {
      throw new BraidException(
          "%maven needs Maven, but `"
              + command
              + "` is not on PATH; install it, or download the jars and use %jars",
          e);
    }
  }

  private static int await(Process maven, BooleanSupplier stopped) {
    try {
      while (!maven.waitFor(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
        if (stopped.getAsBoolean()) {
          throw new BraidException("%maven was interrupted; nothing was added");
        }
      }
      return maven.exitValue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("%maven was interrupted; nothing was added", e);
    } finally {
      maven.descendants().forEach(ProcessHandle::destroyForcibly);
      maven.destroyForcibly();
    }
  }

  /// Returns the first line with the reason, without Maven's decoration.
  private static String reason(List<String> output) {
    return output.stream()
        .map(line -> COLOURS.matcher(line).replaceAll(""))
        .filter(line -> line.startsWith("[ERROR]"))
        .map(line -> line.replaceFirst("^\\[ERROR]\\s*", ""))
        .map(line -> line.replaceFirst("^Failed to execute goal.*?: (?=Could|The following)", ""))
        .filter(line -> !line.isBlank())
        .map(line -> line.replaceAll(" -> \\[Help \\d+].*", ""))
        .findFirst()
        .orElse(COLOURS.matcher(output.getFirst()).replaceAll(""));
  }
}
