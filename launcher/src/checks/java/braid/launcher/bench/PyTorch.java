package braid.launcher.bench;

import braid.bench.Workload;
import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/// PyTorch's forms of the same workloads, timed by processes of its own, one per GPU.
///
/// @param python interpreter that has PyTorch
record PyTorch(Path python, int ranks, List<Workload> workloads, int iterations, Path directory) {
  private static final String SCRIPT = "/braid/bench/pytorch_gpu.py";
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  /// Returns whether the interpreter can import PyTorch.
  static boolean isIn(Path python) throws InterruptedException {
    try {
      var process =
          new ProcessBuilder(python.toString(), "-c", "import torch")
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      try {
        return process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS) && process.exitValue() == 0;
      } finally {
        process.destroyForcibly();
      }
    } catch (IOException _) {
      return false;
    }
  }

  /// Times all forms once.
  void round(GpuTimes into) throws IOException, InterruptedException {
    run(into, List.of());
    if (workloads.stream().anyMatch(each -> each.spec().pattern().beside())) {
      run(into, List.of("--zero"));
    }
  }

  private void run(GpuTimes into, List<String> options) throws IOException, InterruptedException {
    var script = directory.resolve("pytorch_gpu.py");
    try (var source = PyTorch.class.getResourceAsStream(SCRIPT)) {
      if (source == null) {
        throw new IllegalStateException(SCRIPT + " is not in Braid's jar");
      }
      Files.write(script, source.readAllBytes());
    }
    var command = new ArrayList<String>();
    command.addAll(
        List.of(
            python.toString(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"));
    command.addAll(List.of(Integer.toString(ranks), script.toString(), json()));
    command.add(Integer.toString(iterations));
    command.addAll(options);
    try (var child = new TimedChild("PyTorch", command, Map.of(), directory, PATIENCE)) {
      for (var line = child.poll(); line.isPresent(); line = child.poll()) {
        into.read(line.get().line());
      }
      child.succeed();
    }
  }

  private String json() {
    return new Gson().toJson(workloads.stream().map(PyTorch::json).toList());
  }

  private static JsonObject json(Workload workload) {
    var spec = workload.spec();
    var json = new JsonObject();
    json.addProperty("name", workload.name());
    json.addProperty("pattern", spec.pattern().toString());
    json.addProperty("m", spec.m());
    json.addProperty("n", spec.n());
    json.addProperty("k", spec.k());
    json.addProperty("beside", spec.besideElements());
    return json;
  }
}
