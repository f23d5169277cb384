package braid.notebooks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import braid.internal.selftest.Sweep;
import braid.launcher.FrontJvm;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Every fenced block of every page runs ([PageBlocks]), each page in a directory that has what a
/// checkout has: with smaller problems, or in a whole run ([Sweep]) as printed.
@Execution(ExecutionMode.CONCURRENT)
class PageBlocksTest {
  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

  @TempDir Path temporary;

  private static List<Path> pages() throws IOException {
    try (var root = Files.list(ROOT);
        var docs = Files.walk(ROOT.resolve("docs"))) {
      return Stream.concat(root, docs)
          .filter(file -> file.toString().endsWith(".md"))
          .sorted()
          .toList();
    }
  }

  private static boolean runs(Path page) {
    try {
      return PageBlocks.of(page).stream().anyMatch(block -> !block.language().equals("text"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @TestFactory
  Stream<DynamicTest> everyBlockOfAPageRuns() throws IOException {
    var pages = pages().stream().filter(PageBlocksTest::runs).toList();
    assertThat(pages).hasSizeGreaterThan(9);
    return pages.stream()
        .map(page -> dynamicTest(ROOT.relativize(page).toString(), () -> run(page)));
  }

  private void run(Path page) throws IOException, InterruptedException {
    var name = ROOT.relativize(page).toString();
    var directory = checkout(name.replace('/', '-'));
    var log = directory.resolve("page.log").toFile();
    var command = new ArrayList<>(FrontJvm.command());
    command.addAll(List.of(PageBlocks.class.getName(), page.toString(), name));
    if (!Sweep.ALL) {
      command.add("small");
    }
    var builder = new ProcessBuilder(command).directory(directory.toFile());
    builder.environment().put("HOME", Files.createDirectory(directory.resolve("home")).toString());
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().remove("JUPYTER_PATH");
    var process =
        builder
            .redirectErrorStream(true)
            .redirectOutput(log)
            .redirectInput(new File("/dev/null"))
            .start();
    int exitCode = process.waitFor();
    var said = Files.readString(log.toPath());
    System.out.print(said);
    assertThat(exitCode).as(said).isZero();
  }

  /// Creates a folder with what the pages use of a checkout. Its jars lead to the classes under
  /// test.
  private Path checkout(String name) throws IOException {
    var directory = Files.createDirectory(temporary.resolve(name));
    for (var folder : List.of("notebooks", "workbench-lib", "docs")) {
      Files.createSymbolicLink(directory.resolve(folder), ROOT.resolve(folder));
    }
    var jars = Files.createDirectories(directory.resolve("launcher/target/current"));
    var manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest
        .getMainAttributes()
        .put(
            Attributes.Name.CLASS_PATH,
            Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator, -1))
                .map(entry -> Path.of(entry).toUri().toString())
                .collect(Collectors.joining(" ")));
    new JarOutputStream(Files.newOutputStream(jars.resolve("all.jar")), manifest).close();
    return directory;
  }
}
