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

/// A process that is timed from the outside: when it is started and when it says a line, both by
/// this JVM's clock. It has to end when its input does; it and all that it started are ended
/// otherwise.
final class TimedChild implements AutoCloseable {
  /// A line it said, and how long after its start.
  record Said(String line, Duration after) {
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
  private final LinkedBlockingQueue<Optional<Said>> said = new LinkedBlockingQueue<>();

  /// Starts it. `patience` is how long it may be silent, and how long it may take to end.
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
        said.add(Optional.of(new Said(line, Duration.ofNanos(System.nanoTime() - startNanos))));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(name + " can no longer be heard", e);
    } finally {
      said.add(Optional.empty());
    }
  }

  /// The next line; the child's own errors are in the message where there is none.
  Said next() throws InterruptedException {
    var next = said.poll(patience.toNanos(), TimeUnit.NANOSECONDS);
    if (next == null) {
      throw new BraidException(
          "%s said nothing for %d s%s".formatted(name, patience.toSeconds(), tail()));
    }
    return next.orElseThrow(() -> new BraidException(name + " ended early" + tail()));
  }

  /// The next line, which has to begin like that.
  Said expect(String beginning) throws InterruptedException {
    var next = next();
    if (!next.line().startsWith(beginning)) {
      throw new BraidException(
          "%s had to say \"%s\" but said \"%s\"%s"
              .formatted(name, beginning.strip(), next.line(), tail()));
    }
    return next;
  }

  private String tail() {
    try {
      var lines = Files.readAllLines(errors);
      var last = lines.subList(Math.max(0, lines.size() - TAIL_LINES), lines.size());
      return last.isEmpty() ? "" : "; its last words: " + String.join(" | ", last);
    } catch (IOException e) {
      return "; its errors cannot be read: " + e.getMessage();
    }
  }

  ProcessHandle handle() {
    return process.toHandle();
  }

  /// All processes that it started, and they in turn.
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
      process.destroyForcibly(); // it listens no more, so it cannot be asked
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      all.addAll(descendants());
      all.add(handle());
      end(all);
    }
  }

  /// Returns when they are gone: what they write to, the caller may now remove.
  private void end(Set<ProcessHandle> all) {
    all.forEach(ProcessHandle::destroyForcibly);
    var gone = all.stream().map(ProcessHandle::onExit).toArray(CompletableFuture[]::new);
    CompletableFuture.allOf(gone)
        .completeOnTimeout(null, patience.toSeconds(), TimeUnit.SECONDS)
        .join();
  }
}
