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

/// This installation: its checkout, and the command that starts it again.
public final class Installation {
  /// Set by the `braid` script to its directory.
  private static final String HOME = "braid.home";

  private Installation() {}

  /// Directory of the `braid` script; empty if Braid runs from plain jars.
  public static Optional<Path> home() {
    return Optional.ofNullable(System.getProperty(HOME))
        .map(Path::of)
        .or(Installation::checkout)
        .map(Path::toAbsolutePath)
        .filter(directory -> Files.isExecutable(directory.resolve("braid")));
  }

  /// Finds the checkout above `launcher/target/classes` or the jar in `launcher/target`.
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
      throw new IllegalStateException("the JVM's code source is not a valid URI", e);
    }
  }

  /// Command that starts Braid as this process was started: by the script, which finds its JDK
  /// again after an update and rebuilds changed sources, or by this JVM with this class path.
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

  /// Version of the build.
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
