package braid.launcher.bench;

import braid.model.BraidException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/// A child process whose start and output lines are timed by this JVM's clock. It must exit when
/// its stdin is closed; otherwise it and its descendants are killed.
final class TimedChild implements AutoCloseable {
  /// An output line and its time, counted from the start of the process.
  record Line(String line, Duration after) {
    double seconds() {
      return after.toNanos() / 1e9;
    }
  }

  private static final int TAIL_LINES = 5;

  private final String name;
  private final Duration patience;
  private final Path errors;
  private final long startNanos;
  private final Process process;
  private final LinkedBlockingQueue<Optional<Line>> output = new LinkedBlockingQueue<>();

  /// Starts the process. `patience` limits the time between two output lines, and the time to exit.
  TimedChild(
      String name,
      List<String> command,
      Map<String, String> environment,
      Path directory,
      Duration patience)
      throws IOException {
    this.name = name;
    this.patience = patience;
    errors = directory.resolve("errors.txt");
    var builder = new ProcessBuilder(command).directory(directory.toFile());
    builder.redirectError(errors.toFile()).environment().putAll(environment);
    startNanos = System.nanoTime();
    process = builder.start();
    Thread.ofPlatform().daemon().name("braid-bench-" + name).start(this::listen);
  }

  private void listen() {
    try (var lines =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        output.add(Optional.of(new Line(line, Duration.ofNanos(System.nanoTime() - startNanos))));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(name + " cannot be read any more", e);
    } finally {
      output.add(Optional.empty());
    }
  }

  /// Returns the next line. If there is none, the error has the last lines of the child's stderr.
  Line next() throws InterruptedException {
    return poll().orElseThrow(() -> new BraidException(name + " ended early" + tail()));
  }

  /// Returns the next line; empty at the end of the output.
  Optional<Line> poll() throws InterruptedException {
    var next = output.poll(patience.toNanos(), TimeUnit.NANOSECONDS);
    if (next == null) {
      throw new BraidException(
          "%s printed nothing for %d s%s".formatted(name, patience.toSeconds(), tail()));
    }
    return next;
  }

  /// Waits for the process to exit by itself; any exit code but 0 is an error.
  void succeed() throws InterruptedException {
    if (!process.waitFor(patience.toNanos(), TimeUnit.NANOSECONDS)) {
      throw new BraidException(
          "%s did not exit within %d s%s".formatted(name, patience.toSeconds(), tail()));
    }
    if (process.exitValue() != 0) {
      throw new BraidException("%s ended with %d%s".formatted(name, process.exitValue(), tail()));
    }
  }

  /// Returns the next line, which must start with `beginning`.
  Line expect(String beginning) throws InterruptedException {
    var next = next();
    if (!next.line().startsWith(beginning)) {
      throw new BraidException(
          "%s must print \"%s\" but printed \"%s\"%s"
              .formatted(name, beginning.strip(), next.line(), tail()));
    }
    return next;
  }

  private String tail() {
    try {
      var lines = Files.readAllLines(errors);
      var last = lines.subList(Math.max(0, lines.size() - TAIL_LINES), lines.size());
      return last.isEmpty() ? "" : "; its last lines: " + String.join(" | ", last);
    } catch (IOException e) {
      return "; its errors cannot be read: " + e.getMessage();
    }
  }

  ProcessHandle handle() {
    return process.toHandle();
  }

  /// All direct and indirect children.
  List<ProcessHandle> descendants() {
    return handle().descendants().toList();
  }

  @Override
  public void close() {
    Set<ProcessHandle> all = new LinkedHashSet<>(descendants());
    try {
      process.getOutputStream().close();
      process.waitFor(patience.toNanos(), TimeUnit.NANOSECONDS);
    } catch (IOException e) {
      process.destroyForcibly(); // closing stdin failed, so it may never exit by itself
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      all.addAll(descendants());
      all.add(handle());
      end(all);
    }
  }

  /// Kills the processes and waits until they have ended, so that the caller may remove their
  /// files.
  private void end(Set<ProcessHandle> all) {
    all.forEach(ProcessHandle::destroyForcibly);
    var gone = all.stream().map(ProcessHandle::onExit).toArray(CompletableFuture[]::new);
    CompletableFuture.allOf(gone)
        .completeOnTimeout(null, patience.toSeconds(), TimeUnit.SECONDS)
        .join();
  }
}
