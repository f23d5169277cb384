package braid.launcher.cli.home;

import braid.launcher.bundle.Bundle;
import braid.launcher.experiment.GitState;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;

/// This Braid: the checkout it runs from, and how another process starts it again.
public final class Installation {
  /// Set by the `braid` script to the directory it is in.
  private static final String HOME = "braid.home";

  private Installation() {}

  /// The directory of the `braid` script; empty where Braid runs from bare jars.
  public static Optional<Path> home() {
    return Optional.ofNullable(System.getProperty(HOME))
        .map(Path::of)
        .or(Installation::checkout)
        .map(Path::toAbsolutePath)
        .filter(directory -> Files.isExecutable(directory.resolve("braid")));
  }

  /// Three floors up from `launcher/target/classes` or the jar in `launcher/target`.
  private static Optional<Path> checkout() {
    try {
      var source = Installation.class.getProtectionDomain().getCodeSource();
      for (var at = Path.of(source.getLocation().toURI()); at != null; at = at.getParent()) {
        if (Files.isRegularFile(at.resolve("braid"))) {
          return Optional.of(at);
        }
      }
      return Optional.empty();
    } catch (URISyntaxException e) {
      throw new IllegalStateException("the JVM names a code source that is no address", e);
    }
  }

  /// The command that starts Braid as this process was started: by the script, which finds its JDK
  /// again after an update and builds what has changed, or by this JVM with this class path.
  public static List<String> command() {
    var home = System.getProperty(HOME);
    if (home != null) {
      return List.of(Path.of(home, "braid").toAbsolutePath().toString());
    }
    var command = new ArrayList<String>();
    command.add(java().toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> argument.startsWith("--"))
        .forEach(command::add);
    command.addAll(
        List.of("-cp", System.getProperty("java.class.path", ""), "braid.launcher.cli.Braid"));
    return command;
  }

  public static Path java() {
    return Path.of(System.getProperty("java.home", ""), "bin", "java");
  }

  /// As the build wrote it.
  public static String version() {
    var properties = new Properties();
    try (var file =
        Installation.class.getResourceAsStream(
            "/META-INF/maven/dev.braid/braid-launcher/pom.properties")) {
      if (file != null) {
        properties.load(file);
      }
    } catch (IOException e) {
      return "unknown version (" + e.getMessage() + ")";
    }
    return properties.getProperty("version", "development");
  }

  /// The revision that it was built from: a bundle has it in a file, a checkout asks git. For
  /// example "4f80f02a1b2c, with changes"; empty where neither knows.
  public static Optional<String> revision() {
    var folder = home();
    try {
      if (folder.isPresent() && Files.isRegularFile(folder.get().resolve(Bundle.REVISION))) {
        return Optional.of(Files.readString(folder.get().resolve(Bundle.REVISION)).strip());
      }
    } catch (IOException e) {
      return Optional.of("its file " + Bundle.REVISION + " could not be read: " + e);
    }
    return folder.filter(at -> Files.exists(at.resolve(".git"))).flatMap(GitState::revision);
  }
}
