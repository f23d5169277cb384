package braid.launcher.cli.tune;

import braid.evidence.Decision;
import braid.evidence.Decisions;
import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.home.WorkOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.ReportFacts;
import braid.launcher.cli.run.ReportOptions;
import braid.launcher.cli.run.RunFacts;
import braid.launcher.cli.run.RunInputs;
import braid.launcher.experiment.Experiment;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.run.TimeLimits;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid tune`: writes a notebook that tunes an operation, and runs it. Decisions are kept, for
/// `Overlap.auto()`.
@Command(
    name = "tune",
    description =
        "Finds the fastest tuning of an operation on all ranks, keeps the decision for"
            + " Overlap.auto(), and saves the notebook that it ran.",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      " 0:decided, or shown",
      " 1:the tuning failed, or its results could not be saved",
      " 2:a mistake in the options; nothing was run",
      " 3:a result is not the unfused reference's",
      " 4:a time limit",
      " 130:Ctrl-C",
      " 138:a rank died",
      " 143:SIGTERM",
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  braid tune all-gather-gemm 8192 28672 8192 --dtype bf16",
      "  braid tune gemm-all-reduce 512 8192 28672 -n 4 --report all-reduce.html",
      "  braid tune attention 32768 --heads 32 --kv-heads 8 --causal",
      "  braid tune --kept",
      "  braid tune --forget all-gather-gemm",
    })
public final class TuneCommand implements Callable<Integer> {
  private static final String DEFAULT_BUDGET = "60s";

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "OPERATION",
      description =
          "all-gather-gemm, gemm-reduce-scatter, gemm-all-reduce, gemm-beside-all-gather,"
              + " gemm-beside-reduce-scatter or attention.")
  private @Nullable String operation;

  @Parameters(
      index = "1..*",
      arity = "0..*",
      paramLabel = "SIZE",
      description =
          "M N K of the whole multiplication, and the elements communicated beside it; or the"
              + " tokens of the sequence.")
  private List<String> sizes = new ArrayList<>();

  @Mixin private TuneOptions problem = new TuneOptions();

  @Option(
      names = "--budget",
      paramLabel = "TIME",
      description =
          "Time for measuring: 30, 90s or 5m. Half of it is for the search. Default: "
              + DEFAULT_BUDGET
              + ".")
  private String budget = DEFAULT_BUDGET;

  @Option(names = "--kept", description = "Lists the decisions that are kept, and runs nothing.")
  private boolean kept;

  @Option(
      names = "--forget",
      paramLabel = "TEXT",
      description = "Forgets the kept decisions whose problem has this text, and runs nothing.")
  private @Nullable String forget;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.ipynb",
      description = "Where to save the notebook. Default: in the folder of the run, runs/ID.")
  private @Nullable Path output;

  @Mixin private RankOptions ranks = new RankOptions();

  @Mixin private WorkOptions work = new WorkOptions();

  @Mixin private ReportOptions written = new ReportOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var out = spec.commandLine().getOut();
    if (kept || forget != null) {
      requireNoOperation();
      if (forget != null) {
        out.println(forgotten(forget));
      }
      if (kept) {
        out.println(decisions());
      }
      out.flush();
      return ExitCode.OK.code();
    }
    if (operation == null) {
      throw new BraidException(
          "tune needs an operation: %s; for example braid tune all-gather-gemm 8192 28672 8192"
              .formatted(String.join(", ", TunedProblem.names())));
    }
    return tune(TunedProblem.of(operation, sizes, problem));
  }

  private void requireNoOperation() {
    if (operation != null) {
      throw new BraidException(
          "%s runs nothing but the operation %s was given; leave one of them out"
              .formatted(kept ? "--kept" : "--forget", operation));
    }
  }

  private static Decisions decisions() {
    return Decisions.in(Env.here().cache().resolve(Decisions.FOLDER));
  }

  private static String forgotten(String text) {
    var decisions = decisions();
    var matching = decisions.all().stream().filter(each -> each.problem().contains(text)).toList();
    if (matching.isEmpty()) {
      throw new BraidException(
          "--forget must be in the problem of a kept decision but no problem has `%s`; braid tune --kept lists them"
              .formatted(text));
    }
    matching.forEach(decisions::forget);
    return "forgot  "
        + String.join("\nforgot  ", matching.stream().map(Decision::problem).toList());
  }

  private Integer tune(TunedProblem tuned) throws IOException {
    var home = WorkingDirectory.called();
    var env = Env.here();
    var machine = env.machine();
    var err = spec.commandLine().getErr();
    var out = spec.commandLine().getOut();
    var arguments = spec.root().commandLine().getParseResult().originalArgs();
    var options = work.session(ranks.session(env, machine, home));
    if (options.ranks() == 1) {
      throw new BraidException(
          "tune needs 2 or more ranks but has 1: one rank has nothing to communicate; try -n 4 --backend host");
    }
    if (options.backend().sharesGpus()) {
      throw new BraidException(
          "tune needs times that count but ranks share a GPU; try -n with as many ranks as GPUs, or --backend host");
    }
    long seconds = TimeLimits.duration("--budget", budget).toSeconds();
    var file = home.resolve("tune-" + tuned.fileName() + ".ipynb");
    var notebook =
        Notebook.parse(TunedNotebook.json(tuned, seconds), file.getFileName().toString());
    var inputs = RunInputs.again(notebook, file, output);
    var reports = written.of(inputs);
    var begun = Instant.now().truncatedTo(ChronoUnit.SECONDS);
    var queue =
        new NotebookQueue(
            inputs.all(),
            options,
            work.limits(null),
            false,
            false,
            input ->
                new Experiment(
                    home.resolve("runs"),
                    folder ->
                        new RunFacts(arguments, options.home())
                            .notebook(input.notebook(), input.file(), input.output(folder))
                            .limits(work.timeout(), Optional.empty())
                            .of(options, env)),
            err);
    var code = queue.run(reports.ending(ReportFacts.of(arguments, options, machine), out, err));
    decisions().all().stream()
        .filter(each -> each.problem().equals(tuned.problem().toString()))
        .filter(each -> !each.decidedAt().isBefore(begun))
        .forEach(each -> out.println("take    `%s`".formatted(each.tuning())));
    out.flush();
    return code;
  }
}
