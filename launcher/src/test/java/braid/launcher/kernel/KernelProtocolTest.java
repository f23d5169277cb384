package braid.launcher.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import braid.internal.selftest.Sweep;
import braid.launcher.cli.Ran;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonSyntaxException;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Tests the kernel by Jupyter's own clients, in Python in src/test/python. One process runs all
/// tests, and each appears here as a separate test. `-Dbraid.python.tests=test_traps` runs only
/// those.
@Execution(ExecutionMode.CONCURRENT)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class KernelProtocolTest {
  /// Python of Debian by its full path: another python3 may be first on PATH and lack Jupyter.
  private static final Path PYTHON = Path.of("/usr/bin/python3");

  private static final String REMEDY =
      "apt-get install -y python3 python3-jupyter-client python3-nbclient jupyter-nbconvert"
          + " jupyter-notebook jupyter-console chromium chromium-driver python3-selenium";
  private static final Path TESTS = Path.of("src/test/python").toAbsolutePath();
  private static final Duration LIMIT_OF_ONE = Duration.ofMinutes(10);

  @TempDir static Path home;

  private final Map<String, CompletableFuture<JsonObject>> outcomes = new ConcurrentHashMap<>();
  private @Nullable Process python;
  private List<String> tests = List.of();

  @BeforeAll
  void startPython() throws IOException {
    if (!Files.isExecutable(PYTHON)) {
      cannotRun("the kernel's tests need " + PYTHON + ": " + REMEDY);
    }
    var builder = new ProcessBuilder(PYTHON.toString(), TESTS.resolve("run_tests.py").toString());
    var only = System.getProperty("braid.python.tests", "");
    if (!only.isEmpty()) {
      builder.command().addAll(List.of(only.split(",")));
    }
    var environment = builder.environment();
    environment.put("BRAID_KERNEL_ARGV", new Gson().toJson(kernelCommand()));
    environment.put("BRAID_SWEEP", Sweep.ALL ? "all" : "");
    environment.put("PYTHONDONTWRITEBYTECODE", "1");
    environment.put("TMPDIR", home.toString());
    for (var folder :
        List.of(
            "HOME",
            "IPYTHONDIR",
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_PATH",
            "JUPYTER_RUNTIME_DIR")) {
      environment.put(folder, Files.createDirectories(home.resolve(folder)).toString());
    }
    builder.directory(home.toFile());
    builder.redirectError(home.resolve("python.err").toFile());
    python = builder.start();
    var output = python.inputReader();
    var first = output.readLine();
    if (first == null) {
      fail("the Python tests did not start: " + Files.readString(home.resolve("python.err")));
    }
    var event = event(first);
    if (event.has("missing")) {
      cannotRun("the kernel's tests miss Jupyter (" + event.get("missing") + "): " + REMEDY);
    }
    tests =
        event.getAsJsonArray("tests").asList().stream().map(test -> test.getAsString()).toList();
    tests.forEach(test -> outcomes.put(test, new CompletableFuture<>()));
    Thread.ofPlatform().name("python-tests").daemon().start(() -> read(output));
  }

  /// Skips the tests with the reason; fails in CI.
  private static void cannotRun(String reason) {
    if (System.getenv("CI") != null) {
      fail(reason);
    }
    System.err.println("left out: " + reason);
    Assumptions.abort(reason);
  }

  @Execution(ExecutionMode.SAME_THREAD)
  @TestFactory
  Stream<DynamicTest> thePythonTestsPass() {
    assertThat(tests).isNotEmpty();
    return tests.stream().map(test -> dynamicTest(test, () -> passed(test)));
  }

  /// Ends processes of a test that was given up.
  @AfterAll
  void endPython() throws InterruptedException {
    if (python != null && !python.waitFor(1, TimeUnit.SECONDS)) {
      var below = python.descendants().toList();
      python.destroyForcibly();
      below.forEach(ProcessHandle::destroyForcibly);
      python.waitFor();
    }
  }

  private void passed(String test) throws InterruptedException, ExecutionException {
    JsonObject outcome;
    try {
      outcome = outcome(test).get(LIMIT_OF_ONE.toSeconds(), TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      endPython();
      throw new AssertionError(test + " did not end in " + LIMIT_OF_ONE.toSeconds() + " s", e);
    }
    if (outcome.has("missing")) {
      cannotRun(test + " misses " + outcome.get("missing") + ": " + REMEDY);
    }
    if (!outcome.get("passed").getAsBoolean()) {
      fail(test + ": " + outcome.get("text").getAsString());
    }
  }

  private CompletableFuture<JsonObject> outcome(String test) {
    return outcomes.computeIfAbsent(test, _ -> new CompletableFuture<>());
  }

  private void read(BufferedReader output) {
    try (output) {
      for (var line = output.readLine(); line != null; line = output.readLine()) {
        var event = event(line);
        outcome(event.get("test").getAsString()).complete(event);
      }
      end(
          new AssertionError(
              "Python ended early: " + Files.readString(home.resolve("python.err"))));
    } catch (IOException | RuntimeException e) {
      end(e);
    }
  }

  private void end(Throwable reason) {
    outcomes.values().forEach(outcome -> outcome.completeExceptionally(reason));
  }

  private static JsonObject event(String line) {
    try {
      return new Gson().fromJson(line, JsonObject.class);
    } catch (JsonSyntaxException e) {
      throw new AssertionError("run_tests.py printed what is no event: " + line, e);
    }
  }

  private static List<String> kernelCommand() {
    var command = new ArrayList<>(Ran.command());
    command.addAll(List.of("kernel", "start"));
    return command;
  }
}
