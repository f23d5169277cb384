package braid.launcher.hosts;

import braid.model.BraidException;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The program that starts the agents in an allocation: `srun` or `mpirun`. The join key is in its
/// environment, never in an argument list.
public final class AgentJob implements AutoCloseable {
  /// Time for the program to end after its agents.
  private static final Duration END_PATIENCE = Duration.ofSeconds(5);

  private static final Duration VERSION_PATIENCE = Duration.ofSeconds(20);

  /// Programs that start agents.
  public enum Engine {
    SLURM("srun"),
    MPI("mpirun");

    private final String program;

    Engine(String program) {
      this.program = program;
    }

    public String program() {
      return program;
    }
  }

  private final Engine engine;
  private final List<String> options;
  private final List<String> agent;
  private final Map<String, String> variables;
  private volatile @Nullable Process process;
  private volatile boolean closing;

  /// @param options further arguments of the program
  /// @param agent command of an agent
  /// @param variables environment of this process
  public AgentJob(
      Engine engine, List<String> options, List<String> agent, Map<String, String> variables) {
    this.engine = engine;
    this.options = List.copyOf(options);
    this.agent = List.copyOf(agent);
    this.variables = Map.copyOf(variables);
  }

  /// Starts the program. Its output goes to `log`, line by line.
  void start(JoinKey key, int count, Consumer<String> log) {
    closing = false;
    var builder = new ProcessBuilder(command(count));
    builder.environment().put(JoinKey.VARIABLE, key.text());
    builder.redirectInput(new File("/dev/null")).redirectErrorStream(true);
    try {
      var started = builder.start();
      process = started;
      Thread.ofPlatform().daemon().name("braid-" + engine.program).start(() -> print(started, log));
    } catch (IOException e) {
      throw new BraidException(
          "%s cannot be started (%s); is it on PATH?".formatted(engine.program, e.getMessage()), e);
    }
  }

  List<String> command(int count) {
    var command = new ArrayList<String>();
    // Ctrl-C is the front's to handle: a session of its own keeps the terminal's signals away.
    onPath("setsid").ifPresent(command::add);
    command.add(engine.program);
    command.addAll(
        switch (engine) {
          case SLURM ->
              List.of(
                  "--ntasks=" + count,
                  "--kill-on-bad-exit=1",
                  "--overlap",
                  "--distribution=block",
                  "--mpi=none",
                  "--export=ALL");
          case MPI -> mpi(count);
        });
    command.addAll(options);
    command.addAll(agent);
    return command;
  }

  /// Open MPI passes only variables that it is told; others pass all.
  private List<String> mpi(int count) {
    var arguments = Stream.of("-n", Integer.toString(count));
    return (isOpenMpi() ? Stream.concat(arguments, Stream.of("-x", JoinKey.VARIABLE)) : arguments)
        .toList();
  }

  private boolean isOpenMpi() {
    try {
      var asked = new ProcessBuilder(engine.program, "--version").redirectErrorStream(true).start();
      asked.getOutputStream().close();
      var text = new String(asked.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (!asked.waitFor(VERSION_PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        asked.destroyForcibly();
      }
      return text.contains("Open MPI") || text.contains("PRRTE");
    } catch (IOException e) {
      throw new BraidException(
          "mpirun cannot be started (%s); is it on PATH?".formatted(e.getMessage()), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("starting mpirun was interrupted", e);
    }
  }

  private Optional<String> onPath(String program) {
    return Stream.of(variables.getOrDefault("PATH", "").split(File.pathSeparator, -1))
        .map(folder -> Path.of(folder, program))
        .filter(Files::isExecutable)
        .map(Path::toString)
        .findFirst();
  }

  private void print(Process started, Consumer<String> log) {
    try (var lines = started.inputReader()) {
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        log.accept(line);
      }
      int code = started.waitFor();
      if (!closing) {
        log.accept("braid: %s ended with code %d".formatted(engine.program, code));
      }
    } catch (IOException e) {
      if (!closing) {
        log.accept("braid: the output of %s cannot be read: %s".formatted(engine.program, e));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Describes the end of the program; empty while it runs.
  Optional<String> ended() {
    return Optional.ofNullable(process)
        .filter(each -> !each.isAlive())
        .map(each -> "%s ended with code %d".formatted(engine.program, each.exitValue()));
  }

  /// Waits for the end of the program, whose agents have been ended, and ends it if it stays.
  @Override
  public void close() {
    closing = true;
    var running = process;
    if (running == null) {
      return;
    }
    try {
      if (!running.waitFor(END_PATIENCE.toMillis(), TimeUnit.MILLISECONDS)) {
        running.destroy();
        if (!running.waitFor(END_PATIENCE.toMillis(), TimeUnit.MILLISECONDS)) {
          running.destroyForcibly();
        }
      }
    } catch (InterruptedException e) {
      running.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
