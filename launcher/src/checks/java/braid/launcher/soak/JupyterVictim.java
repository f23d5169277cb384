package braid.launcher.soak;

import braid.model.BraidException;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A kernel as Jupyter runs it, controlled by jupyter_client.
final class JupyterVictim implements Victim {
  private static final String SCRIPT = "/braid/soak/jupyter_victim.py";
  private static final List<String> PYTHONS = List.of("python3", "/usr/bin/python3");
  private static final Duration READY = Duration.ofSeconds(90);
  private static final Duration END = Duration.ofSeconds(20);

  private final Process python;
  private final Writer orders;
  private final LinkedBlockingQueue<Long> ready = new LinkedBlockingQueue<>();
  private volatile @Nullable VictimCell cell;
  private long front;

  private JupyterVictim(Process python) {
    this.python = python;
    orders = python.outputWriter(StandardCharsets.UTF_8);
    Thread.ofPlatform().daemon().name("soak-jupyter").start(this::listen);
    front = awaitReady();
  }

  /// @param command command by which Jupyter starts the kernel
  /// @param errors file for the kernel's own messages
  /// @return empty if no python3 has jupyter_client
  static Optional<JupyterVictim> start(List<String> command, Path errors)
      throws IOException, InterruptedException {
    for (var python : PYTHONS) {
      if (hasClient(python)) {
        var line = new ArrayList<>(List.of(python, "-c", script()));
        line.addAll(command);
        return Optional.of(
            new JupyterVictim(new ProcessBuilder(line).redirectError(errors.toFile()).start()));
      }
    }
    return Optional.empty();
  }

  private static boolean hasClient(String python) throws InterruptedException {
    try {
      return new ProcessBuilder(python, "-c", "import jupyter_client")
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start()
              .waitFor()
          == 0;
    } catch (IOException e) {
      return false; // no such command
    }
  }

  private static String script() throws IOException {
    try (var source = JupyterVictim.class.getResourceAsStream(SCRIPT)) {
      if (source == null) {
        throw new IllegalStateException(SCRIPT + " is not in Braid's jar");
      }
      return new String(source.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private void listen() {
    try (var lines =
        new BufferedReader(
            new InputStreamReader(python.getInputStream(), StandardCharsets.UTF_8))) {
      for (var line = lines.readLine(); line != null; line = lines.readLine()) {
        received(JsonParser.parseString(line).getAsJsonObject());
      }
    } catch (IOException e) {
      throw new UncheckedIOException("jupyter_client cannot be read any more", e);
    }
  }

  private void received(JsonObject message) {
    var running = cell;
    if (message.has("ready")) {
      ready.add(message.get("ready").getAsLong());
    } else if (running != null && message.has("ended")) {
      running.end(message.get("ended").getAsBoolean(), message.get("text").getAsString());
    } else if (running != null) {
      running.append(message.get("text").getAsString());
    }
  }

  private long awaitReady() {
    try {
      var pid = ready.poll(READY.toSeconds(), TimeUnit.SECONDS);
      if (pid == null) {
        throw new BraidException(
            "the kernel was not ready in %d s; see its messages".formatted(READY.toSeconds()));
      }
      return pid;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("interrupted while a kernel started", e);
    }
  }

  private void order(String action, String code) {
    var order = new JsonObject();
    order.addProperty("do", action);
    order.addProperty("code", code);
    try {
      orders.write(order + "\n");
      orders.flush();
    } catch (IOException e) {
      throw new UncheckedIOException("jupyter_client has ended", e);
    }
  }

  @Override
  public String name() {
    return "jupyter";
  }

  @Override
  public long front() {
    return front;
  }

  @Override
  public boolean hasLimits() {
    return false;
  }

  @Override
  public VictimCell begin(String code, Optional<Duration> limit) {
    var begun = new VictimCell();
    cell = begun;
    order("begin", code);
    return begun;
  }

  @Override
  public void interrupt() {
    order("interrupt", "");
  }

  @Override
  public void renew() {
    cell = null;
    order("renew", "");
    front = awaitReady();
  }

  @Override
  public void close() {
    try {
      orders.close();
      if (!python.waitFor(END.toSeconds(), TimeUnit.SECONDS)) {
        python.descendants().forEach(ProcessHandle::destroyForcibly);
        python.destroyForcibly();
      }
    } catch (IOException e) {
      python.destroyForcibly();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      python.destroyForcibly();
    }
  }
}
