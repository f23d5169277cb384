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

/// `%maven`: the jars of artifacts and of what they need, as Maven itself resolves them.
public final class MavenJars {
  /// Maven leaves some of its colours in what is no terminal.
  private static final Pattern COLOURS = Pattern.compile("\\u001b\\[[0-9;]*m");

  private static final Pattern COORDINATES = Pattern.compile("[\\w.-]+:[\\w.-]+:[\\w.-]+");
  private static final String PLUGIN =
      "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:build-classpath";
  private static final long POLL_MILLIS = 50;

  private MavenJars() {}

  /// @param command what runs Maven, `mvn`
  /// @param stopped whether the user wants this to end
  /// @throws BraidException where they cannot be had, in one line with the remedy
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
    // What is in the local repository needs no network, and is not looked for there.
    var said = run(command, pom, true, stopped);
    if (!said.isEmpty()) {
      said = run(command, pom, false, stopped);
    }
    if (!said.isEmpty()) {
      throw new BraidException(
          "%maven cannot resolve "
              + String.join(" ", coordinates)
              + ": "
              + reason(said)
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

  /// A download that was cut off, which Maven does not notice, would fail every later cell. A jar
  /// without classes is fine: it may hold resources, or only name other artifacts.
  private static Path requireZip(Path jar) {
    try (var _ = new ZipFile(jar.toFile())) {
      return jar;
    } catch (IOException e) {
      throw new BraidException(
          "%maven must get jars but "
              + jar
              + " is no zip: "
              + e.getMessage()
              + "; remove it, and Maven gets it again",
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

  /// What Maven said against it; empty where it did not.
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
    var said = Files.readAllLines(log, StandardCharsets.UTF_8);
    return code == 0 ? List.of() : said.isEmpty() ? List.of("it exited with " + code) : said;
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

  /// The first line that says what is missing, without Maven's own decoration.
  private static String reason(List<String> said) {
    return said.stream()
        .map(line -> COLOURS.matcher(line).replaceAll(""))
        .filter(line -> line.startsWith("[ERROR]"))
        .map(line -> line.replaceFirst("^\\[ERROR]\\s*", ""))
        .map(line -> line.replaceFirst("^Failed to execute goal.*?: (?=Could|The following)", ""))
        .filter(line -> !line.isBlank())
        .map(line -> line.replaceAll(" -> \\[Help \\d+].*", ""))
        .findFirst()
        .orElse(COLOURS.matcher(said.getFirst()).replaceAll(""));
  }
}
