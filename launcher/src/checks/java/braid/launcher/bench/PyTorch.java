package braid.launcher.bench;

import braid.bench.AttentionWorkload;
import braid.bench.CollectiveWorkload;
import braid.bench.GemmWorkload;
import braid.bench.MethodTimes;
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
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/// PyTorch's forms of the same workloads, timed by processes of its own, one per GPU.
///
/// @param python interpreter that has PyTorch
/// @param workloads workloads of which PyTorch has a form
record PyTorch(Path python, int ranks, List<Workload> workloads, int iterations, Path directory) {
  private static final String SCRIPT = "/braid/bench/pytorch_gpu.py";
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  PyTorch {
    workloads = workloads.stream().filter(PyTorch::hasPeers).toList();
  }

  private static boolean hasPeers(Workload workload) {
    return !(workload instanceof AttentionWorkload attention) || attention.hasPeers();
  }

  /// Returns why the interpreter cannot time PyTorch here; empty if it can.
  Optional<String> refusal() throws IOException, InterruptedException {
    var output = directory.resolve("check.txt");
    Process process;
    try {
      process =
          new ProcessBuilder(python.toString(), script().toString(), "--check")
              .redirectErrorStream(true)
              .redirectOutput(output.toFile())
              .start();
    } catch (IOException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
    try {
      if (!process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        return Optional.of("%s took longer than %d s".formatted(python, PATIENCE.toSeconds()));
      }
      if (process.exitValue() == 0) {
        return Optional.empty();
      }
    } finally {
      process.destroyForcibly();
    }
    var last = Files.readString(output).lines().filter(line -> !line.isBlank());
    return Optional.of(
        "%s: %s"
            .formatted(
                python, last.reduce((_, next) -> next).orElse("exit code " + process.exitValue())));
  }

  /// Times all forms once.
  void round(GpuTimes target) throws IOException, InterruptedException {
    if (workloads.isEmpty()) {
      return;
    }
    run(target, List.of());
    if (workloads.stream().anyMatch(PyTorch::hasCollectiveBeside)) {
      run(target, List.of("--zero"));
    }
  }

  private static boolean hasCollectiveBeside(Workload workload) {
    return workload instanceof GemmWorkload gemm && gemm.spec().pattern().beside();
  }

  private Path script() throws IOException {
    var script = directory.resolve("pytorch_gpu.py");
    try (var source = PyTorch.class.getResourceAsStream(SCRIPT)) {
      if (source == null) {
        throw new IllegalStateException(SCRIPT + " is not in Braid's jar");
      }
      Files.write(script, source.readAllBytes());
    }
    return script;
  }

  private void run(GpuTimes target, List<String> options) throws IOException, InterruptedException {
    var command = new ArrayList<String>();
    command.addAll(
        List.of(
            python.toString(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"));
    command.addAll(List.of(Integer.toString(ranks), script().toString(), json()));
    command.addAll(options);
    try (var child = new TimedChild("PyTorch", command, Map.of(), directory, PATIENCE)) {
      for (var line = child.poll(); line.isPresent(); line = child.poll()) {
        target.read(line.get().line());
      }
      child.succeed();
    }
  }

  private String json() {
    return new Gson().toJson(workloads.stream().map(this::json).toList());
  }

  private JsonObject json(Workload workload) {
    int timed = workload.iterations(iterations);
    var json = new JsonObject();
    json.addProperty("name", workload.name());
    json.addProperty("iterations", timed);
    json.addProperty("warmUp", MethodTimes.warmUp(timed));
    switch (workload) {
      case GemmWorkload gemm -> {
        var spec = gemm.spec();
        json.addProperty("pattern", spec.pattern().toString());
        json.addProperty("m", spec.m());
        json.addProperty("n", spec.n());
        json.addProperty("k", spec.k());
        json.addProperty("beside", spec.besideElements());
      }
      case CollectiveWorkload collective -> {
        json.addProperty("pattern", collective.collective().toString());
        json.addProperty("elements", collective.elements());
        json.addProperty("calls", CollectiveWorkload.CALLS);
      }
      case AttentionWorkload attention -> {
        var spec = attention.spec();
        json.addProperty("pattern", "attention");
        json.addProperty("tokens", spec.sequence());
        json.addProperty("equal", attention.equalWork().sequence());
        json.addProperty("heads", spec.heads());
        json.addProperty("kvHeads", spec.kvHeads());
        json.addProperty("headSize", spec.headSize());
        json.addProperty("backward", attention.hasBackward());
        if (!spec.packing().isSingle()) {
          json.add("ends", new Gson().toJsonTree(spec.packing().cumulative()));
        }
      }
    }
    return json;
  }
}
