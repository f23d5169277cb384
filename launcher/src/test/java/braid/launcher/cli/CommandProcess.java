package braid.launcher.cli;

import braid.launcher.FrontJvm;
import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Objects;

/// JVM that runs `braid` commands in a directory, one after the other: a JVM cannot change its
/// current directory, and a new one takes longer than most commands.
final class CommandProcess implements AutoCloseable {
  private static final Gson GSON = new Gson();

  private final Path directory;
  private final Process process;
  private final BufferedReader results;
  private final PrintStream commands;

  CommandProcess(Path directory) throws IOException {
    this.directory = directory;
    var command = new ArrayList<>(FrontJvm.command());
    command.add(CommandProcess.class.getName());
    process =
        new ProcessBuilder(command)
            .directory(directory.toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    results = process.inputReader(StandardCharsets.UTF_8);
    commands = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
  }

  Ran run(String... arguments) throws IOException {
    commands.println(GSON.toJson(arguments));
    var result = results.readLine();
    if (result == null) {
      throw new IOException("the process ended during braid " + String.join(" ", arguments));
    }
    return GSON.fromJson(result, Ran.class);
  }

  /// Deletes everything in the directory.
  void clear() throws IOException {
    try (var files = Files.walk(directory)) {
      for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
        if (!file.equals(directory)) {
          Files.delete(file);
        }
      }
    }
  }

  /// The process ends with its input.
  @Override
  public void close() throws IOException {
    commands.close();
    results.close();
    var _ = process.onExit().join();
  }

  public static void main(String[] none) throws IOException {
    var results = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    try (var commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (var line = commands.readLine(); line != null; line = commands.readLine()) {
        var arguments = Objects.requireNonNull(GSON.fromJson(line, String[].class));
        results.println(GSON.toJson(Ran.here(arguments)));
      }
    }
  }
}
