package braid.launcher.bench;

import braid.bench.Workload;
import braid.internal.report.value.Caveats;
import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.OutputFile;
import braid.launcher.cell.Cell;
import braid.launcher.cli.CheckCommand;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.machine.BackendChoice;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.notebook.run.StopRequest;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.model.Link;
import braid.natives.WholeFile;
import braid.natives.WholeFolder;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid bench gpu`: Braid's methods beside PyTorch's, in turns.
@Command(
    name = "gpu",
    description =
        "Times layers and attention of a large model and standalone collectives by every method and by PyTorch, in turns, and predicts them.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:measured, whether goals were met or not",
      " 1:a cell failed, or a time is impossible: IMPOSSIBLE_RATE or IMPOSSIBLE_BANDWIDTH",
      " 2:a mistake in the options",
    },
    footer = {
      "  braid bench gpu -n 4 --python /opt/torch/bin/python --markdown docs/results/gpu_4.md",
      "  braid bench gpu -n 2 --only all-gather --rounds 3 --machine h100x8",
      "  braid bench gpu -n 2 --only attention --rounds 3 --iterations 15",
      "  braid bench gpu -n 2 --only standalone",
      "  braid bench gpu -n 2 --backend host --divide 128 --iterations 3",
    })
public final class GpuCommand implements Callable<Integer>, CheckCommand {
  private static final int MAX_ROUNDS = 1000;

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = "--rounds",
      paramLabel = "COUNT",
      description =
          "Rounds of Braid and PyTorch in turns, after one in which Braid chooses the fastest form of each method. Default: ${DEFAULT-VALUE}.")
  private int rounds = 5;

  @Option(
      names = "--iterations",
      paramLabel = "COUNT",
      description =
          "Iterations of a form per round, fewer of the longest workloads. Default: ${DEFAULT-VALUE}.")
  private int iterations = 40;

  @Option(
      names = "--only",
      paramLabel = "TEXT[;TEXT...]",
      description = "Only workloads with one of these texts in their name. Default: all.")
  private String only = "";

  @Option(
      names = "--divide",
      paramLabel = "N",
      description =
          "Divides every size of a GEMM and the tokens of attention, to try the benchmark. Default: ${DEFAULT-VALUE}.")
  private int divisor = 1;

  @Option(
      names = "--python",
      paramLabel = "FILE",
      description = "Python interpreter that has PyTorch. Default: ${DEFAULT-VALUE}.")
  private Path python = Path.of("python3");

  @Option(
      names = "--machine",
      paramLabel = "NAME|FILE",
      description =
          "Machine of the predictions: a built-in name or a file. Default: none, or the nearest built-in one if ranks share a GPU.")
  private @Nullable String machine;

  @Option(
      names = "--markdown",
      paramLabel = "FILE",
      description = "Writes the tables to this file, after each round.")
  private @Nullable Path markdown;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public boolean runsCells() {
    return true;
  }

  @Override
  public Integer call() throws IOException, InterruptedException {
    within("--rounds", rounds, MAX_ROUNDS);
    within("--iterations", iterations, 10_000);
    within("--divide", divisor, 256);
    if (markdown != null) {
      OutputFile.writable("--markdown", markdown);
    }
    var env = Env.here();
    var options = ranks.session(env, env.machine(), Path.of("").toAbsolutePath());
    var workloads =
        Workload.named(Workload.all(options.ranks(), options.backend().isCuda(), divisor), only);
    var described = machine(options.backend());
    Map<String, Map<String, Double>> predicted =
        described.map(each -> GpuTable.predicted(workloads, each)).orElse(Map.of());
    described.ifPresent(each -> print("predicting on " + each.title()));
    var title =
        options.backend().sharesGpus()
            ? Optional.of(
                Caveats.SHARED + described.map(each -> "; predicted on " + each.title()).orElse(""))
            : Optional.<String>empty();
    var directory = Files.createTempDirectory("braid-bench-gpu");
    try {
      return measure(options, workloads, predicted, title, directory);
    } finally {
      WholeFolder.delete(directory);
    }
  }

  private int measure(
      SessionOptions options,
      List<Workload> workloads,
      Map<String, Map<String, Double>> predicted,
      Optional<String> unjudged,
      Path directory)
      throws IOException, InterruptedException {
    var pytorch = new PyTorch(python, options.ranks(), workloads, iterations, directory);
    var refusal =
        unjudged.isPresent()
            ? Optional.of("ranks share a GPU")
            : options.backend().isCuda()
                ? pytorch
                    .refusal()
                    .map(reason -> reason + "; give another interpreter with --python")
                : Optional.of("the backend is host");
    refusal.ifPresent(reason -> print("only Braid is timed: " + reason));
    var ours = new GpuTimes(this::print);
    // PyTorch refuses the same forms in every round.
    var printed = new HashSet<String>();
    var peers =
        new GpuTimes(
            line -> {
              if (printed.add(line)) {
                print(line);
              }
            });
    var table = new GpuTable(workloads, ours, peers, predicted);
    Supplier<List<String>> faults =
        () -> unjudged.isPresent() ? List.of() : table.faults(machine(options));
    Supplier<String> text =
        () ->
            faults.get().stream().map(fault -> fault + "\n\n").collect(Collectors.joining())
                + unjudged.map(table::unjudged).orElseGet(table::text);
    var stop = new StopRequest();
    int exit =
        SignalledSession.run(
            options,
            stop::request,
            session -> {
              print(
                  "%s of %s"
                      .formatted(
                          unjudged.isPresent()
                              ? "keeping every form"
                              : "choosing the fastest form of each method",
                          Counted.of(workloads.size(), "workload")));
              var source =
                  "var times = new braid.bench.MethodTimes(world, %d, \"%s\", %d); times.%s();"
                      .formatted(
                          divisor,
                          only.replace("\\", "\\\\").replace("\"", "\\\""),
                          iterations,
                          unjudged.isPresent() ? "keepAll" : "choose");
              int code = cell(session, source, ours, stop);
              for (int round = 1; round <= rounds && code == 0; round++) {
                print("round %d of %d".formatted(round, rounds));
                code = cell(session, "times.round();", ours, stop);
                if (refusal.isEmpty() && code == 0) {
                  beside(pytorch, peers);
                }
                if (markdown != null && code == 0) {
                  WholeFile.write(markdown, text.get());
                }
              }
              return code;
            });
    if (exit != ExitCode.OK.code()) {
      return exit;
    }
    spec.commandLine().getOut().print(text.get());
    spec.commandLine().getOut().flush();
    return faults.get().isEmpty() ? exit : ExitCode.CELL_FAILED.code();
  }

  /// Returns the columns of the machine, as studies have them.
  private static Map<String, String> machine(SessionOptions options) {
    var backend = options.backend();
    return Map.of(
        "backend",
        backend.kind().toString(),
        Caveats.DEVICE,
        backend.isCuda() ? backend.device(0) : Machine.host(),
        "link",
        options.link().orElse(Link.DEFAULT.toString()));
  }

  private static void beside(PyTorch pytorch, GpuTimes peers) throws IOException {
    try {
      pytorch.round(peers);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BraidException("the benchmark was interrupted while PyTorch ran");
    }
  }

  private int cell(Session session, String source, GpuTimes output, StopRequest stop) {
    var outcome =
        new CellAttempt(session, new Cell("bench", source), output).run(TimeLimits.none(), stop);
    outcome.failure().ifPresent(failure -> failure.traceback().forEach(this::print));
    return outcome.succeeded() ? ExitCode.OK.code() : ExitCode.CELL_FAILED.code();
  }

  /// Returns the machine of the predictions.
  private Optional<Machine> machine(BackendChoice backend) throws IOException {
    if (machine != null) {
      return Optional.of(machine(machine));
    }
    return backend.sharesGpus()
        ? Optional.of(Machine.nearest(backend.device(0)))
        : Optional.empty();
  }

  private static Machine machine(String text) throws IOException {
    var file = Path.of(text);
    return Files.isRegularFile(file) ? Machine.parse(Files.readString(file)) : Machine.named(text);
  }

  private static void within(String option, int value, int most) {
    if (value < 1 || value > most) {
      throw new BraidException(
          "%s must be 1..%d but was %d; try %s 3".formatted(option, most, value, option));
    }
  }

  private void print(String line) {
    var err = spec.commandLine().getErr();
    err.println("braid bench: " + line);
    err.flush();
  }
}
