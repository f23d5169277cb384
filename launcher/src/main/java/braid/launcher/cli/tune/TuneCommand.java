package braid.launcher.cli.tune;

import braid.evidence.Decision;
import braid.evidence.Decisions;
import braid.evidence.Study;
import braid.launcher.ExitCode;
import braid.launcher.cli.experiment.Starts;
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
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.model.Tuning;
import braid.shapes.ModelShapes;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
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
    exitCodeList = {
      " 0:decided or undecided, or shown",
      " 1:the tuning failed, or its results could not be saved",
      " 2:a mistake in the options; nothing was run",
      " 3:a result is not the unfused reference's",
      " 4:a time limit",
      " 130:Ctrl-C",
      " 138:a rank died",
      " 143:SIGTERM",
    },
    footer = {
      "  braid tune all-gather-gemm 8192 28672 8192 --dtype bf16",
      "  braid tune gemm-all-reduce 512 8192 28672 -n 4 --report all-reduce.html",
      "  braid tune attention 32768 --heads 32 --kv-heads 8 --causal",
      "  braid tune --model config.json --tokens 8192 -n 4 --export megatron=tp4.yaml",
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
      names = "--model",
      paramLabel = "config.json",
      description =
          "Tunes the GEMMs of the model's layer, instead of one operation: a configuration of"
              + " Hugging Face.")
  private @Nullable Path model;

  @Option(
      names = "--tp",
      paramLabel = "RANKS",
      description = "With --model: ranks of tensor parallelism. Default: the ranks that run.")
  private @Nullable Integer tp;

  @Option(
      names = "--cp",
      paramLabel = "RANKS",
      description = "With --model: ranks of context parallelism. Default: 1.")
  private @Nullable Integer cp;

  @Option(
      names = "--tokens",
      paramLabel = "TOKENS",
      description = "With --model: tokens of a sequence, required.")
  private @Nullable Integer tokens;

  @Option(
      names = "--export",
      paramLabel = "TARGET=FILE",
      description =
          "With --model: writes the decisions for another program: megatron=tp4.yaml, vllm=FILE.")
  private List<String> exports = new ArrayList<>();

  @Option(
      names = "--budget",
      paramLabel = "TIME",
      description =
          "Time for measuring each operation: 30, 90s or 5m. Half of it is for the search."
              + " Default: "
              + DEFAULT_BUDGET
              + ".")
  private String budget = DEFAULT_BUDGET;

  @Option(
      names = "--starts",
      paramLabel = "N",
      description =
          "Tunes N times, on fresh ranks each, and decides by the rounds of all: what was the fastest"
              + " by chance of one start is not. Default: 1.")
  private int starts = 1;

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
      requireNoOperation(kept ? "--kept" : "--forget");
      requireNoModel();
      if (forget != null) {
        out.println(forgotten(forget));
      }
      if (kept) {
        out.println(decisions());
      }
      out.flush();
      return ExitCode.OK.code();
    }
    var env = Env.here();
    var machine = env.machine();
    var options = work.session(ranks.session(env, machine, WorkingDirectory.called()));
    requireTimes(options);
    if (model != null) {
      return tuneModel(model, options, env);
    }
    requireNoModelOptions();
    if (operation == null) {
      throw new BraidException(
          "tune needs an operation: %s; for example braid tune all-gather-gemm 8192 28672 8192"
              .formatted(String.join(", ", TunedProblem.names())));
    }
    var tuned = TunedProblem.of(operation, sizes, problem);
    return tune(tuned.problem().toString(), List.of(tuned), options, env, _ -> List.of());
  }

  private static void requireTimes(SessionOptions options) {
    if (options.ranks() == 1) {
      throw new BraidException(
          "tune needs 2 or more ranks but has 1: one rank has nothing to communicate; try -n 4 --backend host");
    }
    if (options.backend().sharesGpus()) {
      throw new BraidException(
          "tune needs times that count but ranks share a GPU; try -n with as many ranks as GPUs, or --backend host");
    }
  }

  private void requireNoModelOptions() {
    if (tp != null || cp != null || tokens != null || !exports.isEmpty()) {
      throw new BraidException(
          "--tp, --cp, --tokens and --export need --model but it is missing; name the model's config.json");
    }
  }

  private Integer tuneModel(Path file, SessionOptions options, Env env) throws IOException {
    requireNoOperation("--model");
    if (tokens == null) {
      throw new BraidException("--model needs the tokens of a sequence; for example --tokens 8192");
    }
    int sharing = tp == null ? options.ranks() : tp;
    if (sharing != options.ranks()) {
      throw new BraidException(
          "--tp must be the number of ranks that run, %d, but was %d; try -n %2$d"
              .formatted(options.ranks(), sharing));
    }
    var shapes = ModelShapes.of(file, sharing, cp == null ? 1 : cp, tokens);
    var tuned = TunedModel.of(shapes, exports);
    var err = spec.commandLine().getErr();
    tuned.notes().forEach(note -> err.println("braid: note: " + note));
    var title = "%s tp%d cp%d tokens %d".formatted(shapes.model(), sharing, shapes.cp(), tokens);
    return tune(title, tuned.problems(), options, env, tuned::export);
  }

  private void requireNoOperation(String option) {
    if (operation != null) {
      throw new BraidException(
          "%s takes no operation but %s was given; leave one of them out"
              .formatted(option, operation));
    }
    problem.refuseAll(option);
  }

  private void requireNoModel() {
    if (model != null) {
      throw new BraidException(
          "--kept and --forget run nothing but --model was given; leave one of them out");
    }
    requireNoModelOptions();
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

  /// Exports decisions, and returns lines on what was written.
  private interface Exporting {
    List<String> export(List<Decision> decisions) throws IOException;
  }

  private Integer tune(
      String title,
      List<TunedProblem> problems,
      SessionOptions options,
      Env env,
      Exporting exporting)
      throws IOException {
    var home = WorkingDirectory.called();
    var err = spec.commandLine().getErr();
    var out = spec.commandLine().getOut();
    var arguments = spec.root().commandLine().getParseResult().originalArgs();
    long seconds = TimeLimits.duration("--budget", budget).toSeconds();
    var name = "tune-" + title.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-") + ".ipynb";
    var notebook = Notebook.parse(TunedNotebook.json(title, problems, seconds), name);
    var inputs = RunInputs.again(notebook, home.resolve(name), output);
    var reports = written.of(inputs);
    var further = new Starts(starts, arguments, env, ranks.hosts(), err);
    var runs = new ArrayList<Path>();
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
    var facts = ReportFacts.of(arguments, options, env.machine());
    int code = queue.run(reports.ending(facts, out, err).noting(runs));
    if (code == ExitCode.OK.code() && further.areSeveral()) {
      code = further.run(runs).code();
      try {
        Starts.print(runs, out);
        keep(runs.stream().flatMap(run -> Starts.studies(run).stream()).toList(), problems, begun);
      } catch (BraidException e) {
        // Searches on a noisy machine may have no finalist in common.
        err.println("braid: note: each start decides by itself: " + e.getMessage());
      }
    }
    var decided = decided(problems, begun);
    decided.forEach(
        each -> out.println("take    `%s` for %s".formatted(each.tuning(), each.problem())));
    if (code == ExitCode.OK.code()) {
      undecided(problems.stream().map(each -> each.problem().toString()).toList(), decided)
          .forEach(out::println);
      exporting.export(decided).forEach(out::println);
    }
    out.flush();
    return code;
  }

  /// Returns a line for each problem without a decision.
  static List<String> undecided(List<String> problems, List<Decision> decided) {
    var kept = decided.stream().map(Decision::problem).toList();
    return problems.stream()
        .filter(problem -> !kept.contains(problem))
        .distinct()
        .map(
            problem ->
                "take    `unfused` for %s: undecided, so nothing is kept; a larger --budget may decide"
                    .formatted(problem))
        .toList();
  }

  /// Returns the decisions on these problems that were kept since.
  private static List<Decision> decided(List<TunedProblem> problems, Instant begun) {
    return decisions().all().stream()
        .filter(each -> !each.decidedAt().isBefore(begun))
        .filter(
            each ->
                problems.stream()
                    .anyMatch(tuned -> tuned.problem().toString().equals(each.problem())))
        .toList();
  }

  /// Replaces the decisions of single starts by those of all starts, where these decide.
  private static void keep(List<Study<?>> ofAllStarts, List<TunedProblem> problems, Instant begun) {
    for (var decision : decided(problems, begun)) {
      ofAllStarts.stream()
          .filter(study -> study.problem().equals(decision.study().problem()))
          .map(
              study ->
                  new Decision(
                      decision.setting(),
                      decision.versions(),
                      Instant.now(),
                      study.cast(Tuning.class)))
          .filter(Decision::isCertain)
          .forEach(decisions()::keep);
    }
  }
}
