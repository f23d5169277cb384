package braid.launcher.cli.doctor;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.machine.BackendChoice;
import braid.launcher.machine.RankCount;
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
/// [{"pattern", "method", "transport", "memory", "supported": BOOLEAN, "engine", "note"}, …],
/// "collectives": [the same with "collective" for pattern and method], "backend": whose these
/// are}`; ids and fields stay, new ones may come, and `doctor` is raised if one ever changes or
/// goes.
@Command(
    name = "doctor",
    description =
        "Says what is here, or why not: JDK, memory, GPUs, libraries, Jupyter;"
            + " and what can be overlapped how.",
    mixinStandardHelpOptions = true,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {" 0:all that Braid needs is here", " 1:something that Braid needs is missing"},
    footerHeading = "%nExamples:%n",
    footer = {
      "  braid doctor",
      "  braid doctor --json | jq '.checks[] | select(.state != \"ok\")'",
      "  braid doctor --json | jq -c '.overlaps[] | select(.supported)'"
    })
public final class DoctorCommand implements Callable<Integer> {
  private static final int SHAPE = 1;

  /// Of a terminal that is no wider than usual.
  private static final int COLUMNS = 100;

  /// What says nothing where there is no GPU.
  private static final Set<String> OF_GPUS =
      Set.of(
          "cuda_driver",
          "cuda_runtime",
          "cublas_lt",
          "nvrtc",
          "nccl",
          "cupti",
          "nvml",
          "nvshmem",
          "gpu_driver",
          "gpu_links",
          "cuda",
          "memory_ipc",
          "memory_nccl",
          "memory_nvshmem",
          "cache");

  @Option(names = "--json", description = "Prints JSON, for programs.")
  private boolean json;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var env = Env.here();
    var machine = env.machine();
    var checks = new ArrayList<Check>();
    checks.addAll(MachineChecks.all(env, machine));
    checks.addAll(LibraryChecks.all(machine.gpus()));
    checks.addAll(GpuChecks.all(machine.gpus()));
    checks.add(CacheCheck.of(env.cache()));
    checks.addAll(JupyterChecks.all(env));

    boolean ok = checks.stream().noneMatch(check -> check.state() == Check.State.MISSING);
    var out = spec.commandLine().getOut();
    if (json) {
      out.println(json(checks, ok, backend(env, machine)));
    } else {
      // One line is enough to say that there is no GPU.
      var said =
          machine.gpus().count() > 0
              ? checks
              : checks.stream().filter(check -> !OF_GPUS.contains(check.id())).toList();
      report(said, ok, backend(env, machine), out);
    }
    out.flush();
    return (ok ? ExitCode.OK : ExitCode.CELL_FAILED).code();
  }

  /// Whose abilities are shown.
  private static String backend(Env env, RankCount machine) {
    try {
      return MachineChecks.choice(env, machine).name();
    } catch (BraidException e) {
      return BackendChoice.HOST; // what is wrong with the choice stands among the checks
    }
  }

  private static void report(List<Check> checks, boolean ok, String backend, PrintWriter out) {
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
    new AbilityTable(COLUMNS, backend, Ability.overlaps(backend), Ability.collectives(backend))
        .lines()
        .forEach(out::println);
    out.println();
    out.println(ok ? "All that Braid needs is here." : "Something that Braid needs is missing.");
  }

  private static String json(List<Check> checks, boolean ok, String backend) {
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
    report.addProperty("backend", backend);
    report.add("overlaps", json(Ability.overlaps(backend), "pattern"));
    report.add("collectives", json(Ability.collectives(backend), "collective"));
    return new GsonBuilder()
        .setPrettyPrinting()
        .serializeNulls()
        .disableHtmlEscaping()
        .create()
        .toJson(report);
  }

  private static JsonArray json(List<Ability> abilities, String taskName) {
    var list = new JsonArray();
    abilities.forEach(ability -> list.add(ability.json(taskName)));
    return list;
  }
}
