package braid.launcher.cli;

import braid.launcher.ExitCode;
import braid.launcher.cli.experiment.AlternatingOptions;
import braid.launcher.cli.experiment.BaselineOptions;
import braid.launcher.cli.experiment.Starts;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.home.WorkOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.ParameterList;
import braid.launcher.cli.run.ReportFacts;
import braid.launcher.cli.run.ReportOptions;
import braid.launcher.cli.run.RunFacts;
import braid.launcher.cli.run.RunInput;
import braid.launcher.cli.run.RunInputs;
import braid.launcher.experiment.Experiment;
import braid.launcher.machine.RankCount;
import braid.launcher.notebook.EarlierRun;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.parameters.Parameters;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid run`: runs notebooks. Everything that can be wrong with the user's input is found before
/// a rank starts.
@Command(
    name = "run",
    description =
        "Runs notebooks on all ranks, without Jupyter, and saves them with their outputs.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:every cell ran; with --check, as it is recorded",
      " 1:a cell failed, something ended the run before its last cell, or what ran could not be"
          + " saved",
      " 2:a mistake in the options, the parameters or the notebook; nothing was run",
      " 3:a result is not the unfused reference's",
      " 4:a time limit",
      " 5, 6:with --baseline: as of compare",
      " 7:with --check: every cell ran or failed as recorded, but showed other kinds of output",
      " 130:Ctrl-C; what ran is saved",
      " 138:a rank died",
      " 143:SIGTERM; what ran is saved",
    },
    footerHeading =
        "%nFor several notebooks, the worst code: 138, 4, 3, 1, 2, 7, 6, 5.%n%nExamples:%n",
    footer = {
      "  braid run notebooks/02_tune_split_count.ipynb",
      "  braid run tune.ipynb -n 8 -p m=8192 -p splits=1,2,4 -o tuned.ipynb",
      "  braid run tune.ipynb -f sizes.yaml --cell-timeout 60 --junit tune.xml",
      "  braid run tune.ipynb tuned.ipynb -p m=8192 --log-output",
      "  braid run notebooks/*.ipynb -n 4 -o results --report results/report.html",
      "  braid run tune.ipynb --record && braid run tune.ipynb --check",
      "  braid run tune.ipynb --until-decided 10m --summary tune.md",
      "  braid run tune.ipynb --starts 12",
      "  braid run tune.ipynb --baseline last:5",
    })
final class RunCommand implements Callable<Integer> {
  @picocli.CommandLine.Parameters(
      paramLabel = "NOTEBOOK",
      arity = "1..*",
      description =
          "The notebooks, run in order on fresh ranks; only --record changes them. Of two, the"
              + " second is the output file if it does not exist, or is the output of the first.")
  private List<Path> notebooks = new ArrayList<>();

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = {"-p", "--parameters"},
      paramLabel = "NAME=VALUE",
      description = "Sets a parameter, as the notebook declares it: m=8192, splits=1,2,4.")
  private List<String> typed = new ArrayList<>();

  @Option(
      names = {"-r", "--parameters_raw"},
      paramLabel = "NAME=TEXT",
      description = "Sets a String parameter, whatever its text looks like.")
  private List<String> raw = new ArrayList<>();

  @Option(
      names = {"-f", "--parameters_file"},
      paramLabel = "FILE",
      description = "Sets parameters from a YAML or JSON file; -p and -r override it.")
  private List<Path> files = new ArrayList<>();

  @Option(
      names = {"-y", "--parameters_yaml"},
      paramLabel = "YAML",
      description = "Sets parameters from YAML: -y '{m: 8192, splits: [1, 2, 4]}'.")
  private List<String> yaml = new ArrayList<>();

  @Option(
      names = {"-b", "--parameters_base64"},
      paramLabel = "TEXT",
      description = "Sets parameters from YAML in base64, which no shell changes.")
  private List<String> base64 = new ArrayList<>();

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.ipynb",
      description =
          "The file to save it in; of several notebooks, the directory. Default: NAME.out.ipynb in"
              + " the folder of the run, runs/ID.")
  private @Nullable Path output;

  @Option(
      names = "--cwd",
      paramLabel = "DIR",
      description =
          "Working directory of all cells. Paths of other options are relative to the current"
              + " directory, which also keeps runs/.")
  private @Nullable Path cwd;

  @Mixin private WorkOptions work = new WorkOptions();

  @Option(names = "--log-output", description = "Prints the output of the cells to stderr too.")
  private boolean logOutput;

  @Option(
      names = "--cell-timeout",
      paramLabel = "TIME",
      description = "Ends a notebook if one of its cells takes longer than this.")
  private @Nullable String cellTimeout;

  @Option(
      names = "--until-decided",
      paramLabel = "TIME",
      description =
          "Lets the studies measure beyond their budgets until they are decided: 600, 90s, 10m or"
              + " 1h for all studies of a notebook together. The end of the run says which are. A"
              + " study with a fixed number of rounds keeps it.")
  private @Nullable String untilDecided;

  @Option(
      names = "--starts",
      paramLabel = "N",
      description =
          "Runs the notebooks N times, on fresh ranks each, and pools their studies: compare then"
              + " knows how much starts differ, and finds smaller changes. The output, the reports"
              + " and the checks are those of the first start; time limits are for each start."
              + " Default: 1.")
  private int starts = 1;

  @Mixin private ReportOptions written = new ReportOptions();

  @Mixin private BaselineOptions baseline = new BaselineOptions();

  @Mixin private AlternatingOptions alternating = new AlternatingOptions();

  @Option(
      names = "--check",
      description =
          "Compares each notebook with the outputs stored in it: the same cells succeed, with the"
              + " same kinds of output and the same columns of tables; never a number.")
  private boolean check;

  @Option(
      names = "--record",
      description =
          "Stores the outputs of each complete run in the notebook itself, with a sentence that names"
              + " the machine, for pages that show notebooks and for --check.")
  private boolean record;

  @Option(
      names = "--fail-fast",
      description = "Runs no further notebook after one that fails. Default: runs all.")
  private boolean failFast;

  @Option(
      names = "--help-notebook",
      description = "Lists the notebooks' parameters, with types and defaults, and runs nothing.")
  private boolean helpNotebook;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    if (cwd != null) {
      WorkingDirectory.enter("--cwd", cwd);
    }
    var err = spec.commandLine().getErr();
    if (isOutputLast()) {
      takeOutput(err);
    }
    if (helpNotebook) {
      return listParameters();
    }
    boolean inTurns = alternating.isGiven(withoutEffectInTurns());
    var limits = work.limits(cellTimeout);
    var inputs = RunInputs.of(notebooks, output, parameters(), check, record);
    var home = WorkingDirectory.called();
    var env = Env.here();
    var machine = env.machine();
    var options = session(env, machine, home);
    if (inTurns) {
      inputs.notes().forEach(note -> err.println("braid: note: " + note));
      return alternating.run(
          options,
          env,
          (side, ending) ->
              queue(RunInputs.of(notebooks, null, parameters(), false, false), side, limits, env)
                  .run(ending),
          spec.root().commandLine());
    }
    var reports = written.of(inputs);
    var further = new Starts(starts, arguments(spec), env, ranks.hosts(), err);
    var out = spec.commandLine().getOut();
    var ofReports = reports.ending(ReportFacts.of(arguments(spec), options, machine), out, err);
    var ending = baseline.judging(ofReports, inputs, further, spec.root().commandLine());

    inputs.notes().forEach(note -> err.println("braid: note: " + note));
    var runs = new ArrayList<Path>();
    int code = queue(inputs, options, limits, env).run(ending.noting(runs));
    if (!further.areSeveral() || code != ExitCode.OK.code()) {
      return code;
    }
    var ended = further.run(runs);
    if (ended == ExitCode.OK) {
      Starts.print(runs, out);
    }
    return ended.code();
  }

  private NotebookQueue queue(
      RunInputs inputs, SessionOptions options, TimeLimits limits, Env env) {
    return new NotebookQueue(
        inputs.all(),
        options,
        limits,
        failFast,
        logOutput,
        input ->
            new Experiment(
                options.home().resolve("runs"), folder -> facts(input, folder, options, env)),
        spec.commandLine().getErr());
  }

  /// Returns the options that were given and have no effect if the notebook runs in turns.
  private List<String> withoutEffectInTurns() {
    var given = new ArrayList<String>();
    if (notebooks.size() > 1) {
      given.add(notebooks.size() + " notebooks");
    }
    if (output != null) {
      given.add("--output");
    }
    spec.commandLine().getParseResult().matchedOptions().stream()
        .map(option -> option.longestName())
        .filter(
            List.of(
                    "--check",
                    "--record",
                    "--starts",
                    "--junit",
                    "--report",
                    "--summary",
                    "--baseline",
                    "--threshold",
                    "--fail-on-undecided")
                ::contains)
        .forEach(given::add);
    return given;
  }

  private SessionOptions session(Env env, RankCount machine, Path home) {
    var options = work.session(ranks.session(env, machine, home));
    return untilDecided == null
        ? options
        : options.untilDecided(TimeLimits.duration("--until-decided", untilDecided));
  }

  /// Returns true for papermill's form: a notebook and its output. With a folder as output both are
  /// notebooks.
  private boolean isOutputLast() {
    if (notebooks.size() != 2 || (output != null && Files.isDirectory(output))) {
      return false;
    }
    var last = notebooks.getLast();
    return Files.notExists(last)
        || (!check && !record && EarlierRun.isOutputOf(Notebook.read(last), notebooks.getFirst()));
  }

  private void takeOutput(PrintWriter err) {
    var last = notebooks.getLast();
    var why =
        Files.exists(last) ? "is an earlier output of" : "does not exist and so is the output of";
    if (output != null) {
      throw new BraidException(
          "the output must be named once but %s %s %s, and -o is %s; leave out one of them"
              .formatted(last, why, notebooks.getFirst(), output));
    }
    err.println("braid: note: %s %s %s".formatted(last, why, notebooks.getFirst()));
    output = last;
    notebooks = List.of(notebooks.getFirst());
  }

  private JsonObject facts(RunInput input, Path folder, SessionOptions options, Env env) {
    return new RunFacts(arguments(spec), options.home())
        .workingDirectory(cwd)
        .notebook(input.notebook(), input.file(), input.output(folder))
        .limits(work.timeout(), Optional.ofNullable(cellTimeout))
        .of(options, env);
  }

  /// Arguments of the whole command line.
  static List<String> arguments(CommandSpec spec) {
    return spec.root().commandLine().getParseResult().originalArgs();
  }

  private int listParameters() {
    var out = spec.commandLine().getOut();
    notebooks.stream()
        .map(Notebook::read)
        .forEach(notebook -> ParameterList.of(notebook).forEach(out::println));
    out.flush();
    return ExitCode.OK.code();
  }

  private Parameters parameters() {
    var given = Parameters.given();
    files.forEach(given::file);
    yaml.forEach(given::yaml);
    base64.stream().map(RunCommand::decoded).forEach(given::yaml);
    typed.forEach(given::typed);
    raw.forEach(given::raw);
    return given.build();
  }

  private static String decoded(String text) {
    try {
      return new String(
          Base64.getDecoder().decode(text.replaceAll("\\s", "")), StandardCharsets.UTF_8);
    } catch (IllegalArgumentException e) {
      throw new BraidException(
          "-b must be YAML in base64 but was %s (%s); try -b $(echo '{m: 8192}' | base64 -w 0)"
              .formatted(text, e.getMessage()),
          e);
    }
  }
}
