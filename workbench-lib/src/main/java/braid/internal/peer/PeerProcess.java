package braid.internal.peer;

import braid.internal.rank.Waits;
import braid.model.BraidException;
import braid.model.Timing;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A Python process of one rank: it runs a script, and then the steps that the script names, when
/// the rank asks for it. It ends with the rank.
public final class PeerProcess implements AutoCloseable {
  private static final String PROGRAM = "/braid/peer/serve.py";
  private static final long GRACE_SECONDS = 5;

  /// The end of the replies.
  private static final String END = "";

  private final String name;
  private final Waits waits;
  private final Process process;
  private final BlockingQueue<String> replies = new LinkedBlockingQueue<>();
  private final Thread errors;
  private volatile String lastLine = "";
  private volatile boolean closed;

  /// @param name name for messages: "`peer.py` of rank 1"
  /// @param command interpreter, script and arguments
  public PeerProcess(
      String name, List<String> command, Map<String, String> environment, Waits waits) {
    this.name = name;
    this.waits = waits;
    var whole = new ArrayList<>(command);
    whole.addAll(1, List.of("-u", "-c", program()));
    var builder = new ProcessBuilder(whole);
    // Secrets of the session are nothing for a script.
    builder.environment().keySet().removeIf(key -> key.startsWith("BRAID_"));
    builder.environment().putAll(environment);
    try {
      process = builder.start();
    } catch (IOException e) {
      throw new BraidException(
          "%s cannot start: %s; name an interpreter: BRAID_PYTHON=/path/to/python"
              .formatted(name, e.getMessage()),
          e);
    }
    follow("replies of " + name, process.inputReader(StandardCharsets.UTF_8), this::received);
    errors =
        follow("output of " + name, process.errorReader(StandardCharsets.UTF_8), this::printed);
  }

  private static String program() {
    try (var stream = PeerProcess.class.getResourceAsStream(PROGRAM)) {
      if (stream == null) {
        throw new IllegalStateException(PROGRAM + " is not in Braid's jar");
      }
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Thread follow(
      String title, BufferedReader reader, Consumer<@Nullable String> lines) {
    return Thread.ofPlatform()
        .daemon()
        .name(title)
        .start(
            () -> {
              try (reader) {
                for (var line = reader.readLine(); line != null; line = reader.readLine()) {
                  lines.accept(line);
                }
              } catch (IOException e) {
                // The process was killed.
              }
              lines.accept(null);
            });
  }

  private void received(@Nullable String line) {
    replies.add(line == null ? END : line);
  }

  private void printed(@Nullable String line) {
    if (line != null) {
      lastLine = line.isBlank() ? lastLine : line;
      System.out.println(line);
    }
  }

  /// Waits until the script has run, and returns what it runs on and then the names of its steps.
  public List<String> steps() {
    return reply("the steps of " + name, "steps");
  }

  /// Runs a step and returns the nanoseconds of each iteration.
  public long[] time(String step, int iterations, Timing form) {
    var subject = "step `%s` of %s".formatted(step, name);
    try {
      var request = "%d\t%s\t%s\n".formatted(iterations, form, step);
      process.getOutputStream().write(request.getBytes(StandardCharsets.UTF_8));
      process.getOutputStream().flush();
    } catch (IOException e) {
      // The process has ended; the reply says why.
    }
    return reply(subject, "nanos").stream().mapToLong(Long::parseLong).toArray();
  }

  /// Returns the fields of the next reply. Without one the process is out of step, and ends.
  private List<String> reply(String subject, String kind) {
    try {
      var line = waits.until(() -> subject, nanos -> replies.poll(nanos, TimeUnit.NANOSECONDS));
      var fields = Arrays.asList(line.split("\t", -1));
      if (line.equals(END)) {
        throw new BraidException("%s ended: %s".formatted(subject, cause()));
      }
      if (!fields.getFirst().equals(kind)) {
        throw new BraidException("%s failed: %s".formatted(subject, fields.getLast()));
      }
      return fields.subList(1, fields.size());
    } catch (RuntimeException e) {
      kill();
      throw e;
    }
  }

  private String cause() {
    try {
      process.waitFor(GRACE_SECONDS, TimeUnit.SECONDS);
      errors.join(TimeUnit.SECONDS.toMillis(1));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    var code = process.isAlive() ? "no more replies" : "exit code " + process.exitValue();
    return lastLine.isEmpty() ? code : code + ", " + lastLine;
  }

  private void kill() {
    closed = true;
    Stream.concat(process.descendants(), Stream.of(process.toHandle()))
        .forEach(ProcessHandle::destroyForcibly);
  }

  /// Returns true after a failure, or when it is closed.
  public boolean isClosed() {
    return closed;
  }

  /// Ends the process. Closing twice is harmless.
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      process.getOutputStream().close();
    } catch (IOException e) {
      // It has ended already.
    }
    try {
      if (process.waitFor(GRACE_SECONDS, TimeUnit.SECONDS)) {
        return;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    kill();
  }
}
