package braid.launcher.cli.doctor;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.machine.RankCount;
import braid.model.BackendKind;
import braid.model.BraidException;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid doctor`. Its JSON is `{"doctor": 1, "braid": VERSION, "ok": BOOLEAN, "checks": [{"id",
/// "title", "state": "ok"|"absent"|"missing", "value", "remedy": TEXT or null}, …], "overlaps":
/// [{"pattern", "method", "transport", "memory", "supported": BOOLEAN, "engine", "note", "spans":
/// hosts whose ranks can do this together}, …], "collectives": [the same with "collective" for
/// pattern and method], "backend": the backend of both lists, "features": [{"feature", "component",
/// "minimum", "found", "refused": both versions, "spans": hosts that a kind of memory spans; each
/// TEXT or null}, …]}`. Ids and fields are stable, and new ones may be added; `doctor` is the
/// version of the shape.
@Command(
    name = "doctor",
    description =
        "Prints what is available, or why not: JDK, memory, GPUs, libraries, Jupyter;"
            + " and the supported patterns and collectives.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:everything Braid needs is available",
      " 1:something Braid needs is missing"
    },
    footer = {
      "  braid doctor",
      "  braid doctor --json | jq '.checks[] | select(.state != \"ok\")'",
      "  braid doctor --json | jq -c '.overlaps[] | select(.supported)'",
      "  braid doctor --hosts"
    })
public final class DoctorCommand implements Callable<Integer> {
  private static final int SHAPE = 1;

  /// Width of a usual terminal.
  private static final int COLUMNS = 100;

  /// Checks that are pointless without a GPU.
  private static final Set<String> OF_GPUS =
      Set.of(
          "cuda_driver",
          "cuda_runtime",
          "cublas_lt",
          "cudnn",
          "nvrtc",
          "nccl",
          "cupti",
          "nvml",
          "nvshmem",
          "cublas_mp",
          "gpu_driver",
          "gpu_links",
          "cuda",
          "attention",
          "memory_ipc",
          "memory_nccl",
          "memory_nvshmem",
          "cache");

  @Option(names = "--json", description = "Prints JSON, for programs.")
  private boolean json;

  @Option(
      names = "--hosts",
      description =
          "Prints only which kinds of memory and which methods can span hosts, on both backends.")
  private boolean hosts;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    if (hosts && json) {
      throw new BraidException(
          "--hosts has no effect with --json, whose rows all have \"spans\"; leave one of them out");
    }
    if (hosts) {
      var out = spec.commandLine().getOut();
      HostGrid.lines(COLUMNS).forEach(out::println);
      out.flush();
      return ExitCode.OK.code();
    }
    var env = Env.here();
    var machine = env.machine();
    var checks = new ArrayList<Check>();
    checks.addAll(MachineChecks.all(env, machine));
    checks.addAll(LibraryChecks.all(machine.gpus()));
    checks.addAll(GpuChecks.all(machine.gpus()));
    checks.add(AttentionCheck.of(env, machine.gpus()));
    checks.add(CacheCheck.of(env.cache()));
    checks.addAll(JupyterChecks.all(env));

    var features = FeatureTable.of(machine.gpus());
    boolean ok = checks.stream().noneMatch(check -> check.state() == Check.State.MISSING);
    var out = spec.commandLine().getOut();
    if (json) {
      out.println(json(checks, ok, backend(env, machine), features));
    } else {
      // Without a GPU, one line about it is enough.
      var printed =
          machine.gpus().count() > 0
              ? checks
              : checks.stream().filter(check -> !OF_GPUS.contains(check.id())).toList();
      report(printed, ok, backend(env, machine), features, out);
    }
    out.flush();
    return (ok ? ExitCode.OK : ExitCode.CELL_FAILED).code();
  }

  /// Backend whose abilities are printed.
  private static BackendKind backend(Env env, RankCount machine) {
    try {
      return MachineChecks.choice(env, machine).kind();
    } catch (BraidException e) {
      return BackendKind.HOST; // a check reports the invalid choice
    }
  }

  private static void report(
      List<Check> checks, boolean ok, BackendKind backend, FeatureTable features, PrintWriter out) {
    int columns = checks.stream().mapToInt(check -> check.title().length()).max().orElse(0);
    out.println("braid " + Installation.version());
    for (var check : checks) {
      out.printf(
          "  %-" + columns + "s  %-7s  %s%n", check.title(), check.state().word(), check.value());
      check
          .remedy()
          .ifPresent(remedy -> out.printf("  %" + columns + "s  %7s  try: %s%n", "", "", remedy));
    }
    out.println();
    new AbilityTable(
            COLUMNS,
            backend,
            Ability.overlaps(backend),
            Ability.attentions(backend),
            Ability.collectives(backend))
        .lines()
        .forEach(out::println);
    out.println();
    features.lines().forEach(out::println);
    out.println();
    out.println(ok ? "Everything Braid needs is available." : "Something Braid needs is missing.");
  }

  private static String json(
      List<Check> checks, boolean ok, BackendKind backend, FeatureTable features) {
    var list = new JsonArray();
    for (var check : checks) {
      var item = new JsonObject();
      item.addProperty("id", check.id());
      item.addProperty("title", check.title());
      item.addProperty("state", check.state().word());
      item.addProperty("value", check.value());
      item.add(
          "remedy",
          check.remedy().isPresent() ? new JsonPrimitive(check.remedy().get()) : JsonNull.INSTANCE);
      list.add(item);
    }
    var report = new JsonObject();
    report.addProperty("doctor", SHAPE);
    report.addProperty("braid", Installation.version());
    report.addProperty("ok", ok);
    report.add("checks", list);
    report.addProperty("backend", backend.toString());
    report.add("overlaps", json(Ability.overlaps(backend), "pattern", backend));
    report.add("attention", json(Ability.attentions(backend), "pass", backend));
    report.add("collectives", json(Ability.collectives(backend), "collective", backend));
    report.add("features", features.json());
    return new GsonBuilder()
        .setPrettyPrinting()
        .serializeNulls()
        .disableHtmlEscaping()
        .create()
        .toJson(report);
  }

  private static JsonArray json(List<Ability> abilities, String taskName, BackendKind backend) {
    var list = new JsonArray();
    abilities.forEach(ability -> list.add(ability.json(taskName, backend)));
    return list;
  }
}
