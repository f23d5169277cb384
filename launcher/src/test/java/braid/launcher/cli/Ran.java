package braid.launcher.cli;

import braid.launcher.FrontJvm;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/// Result of a `braid` command.
public record Ran(int exitCode, String out, String err) {
  private static final long PATIENCE_SECONDS = 240;

  /// Returns the command line of `braid` from the classes under test.
  public static List<String> command() {
    var command = new ArrayList<>(FrontJvm.command());
    command.add(Braid.class.getName());
    return command;
  }

  /// Runs a command in this JVM.
  public static Ran here(String... arguments) {
    var out = new StringWriter();
    var err = new StringWriter();
    int exitCode =
        Braid.commandLine()
            .setOut(new PrintWriter(out))
            .setErr(new PrintWriter(err))
            .execute(arguments);
    return new Ran(exitCode, out.toString(), err.toString());
  }

  /// Runs a command in a separate JVM and passes each line of stderr to `atLine` as it arrives.
  static Ran apart(
      Path directory,
      Map<String, String> environment,
      BiConsumer<Process, String> atLine,
      String... arguments)
      throws IOException, InterruptedException {
    var command = new ArrayList<>(command());
    command.addAll(List.of(arguments));
    var builder = new ProcessBuilder(command).directory(directory.toFile());
    builder.environment().putAll(environment);
    var process = builder.start();
    var out = new StringBuilder();
    var outReader = Thread.ofVirtual().start(() -> out.append(read(process)));
    var err = new StringBuilder();
    try (var lines = process.errorReader(StandardCharsets.UTF_8)) {
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        err.append(line).append('\n');
        atLine.accept(process, line);
      }
    }
    if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
      process.destroyForcibly();
      throw new IOException("braid does not end; it said: " + err);
    }
    outReader.join();
    return new Ran(process.exitValue(), out.toString(), err.toString());
  }

  private static String read(Process process) {
    try {
      return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("stdout of braid cannot be read", e);
    }
  }
}
