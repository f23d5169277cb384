package braid.launcher.cli;

import braid.BraidException;
import braid.launcher.cli.experiment.RunFacts;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.experiment.Experiment;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.ParameterCell;
import braid.launcher.notebook.parameters.Parameters;
import braid.launcher.notebook.run.JUnitReport;
import braid.launcher.notebook.run.NotebookRunner;
import braid.launcher.notebook.run.RunProgress;
import braid.launcher.notebook.run.RunResult;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.SessionOptions;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid run`: everything that can be wrong with what the user gave is found before a rank starts.
@Command(
    name = "run",
    description = "Runs a notebook on all ranks, without Jupyter, and saves it with its outputs.",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      " 0:every cell ran",
      " 1:a cell failed",
      " 2:a mistake in the options, the parameters or the notebook; nothing was run",
      " 3:a result is not the unfused reference's",
      " 4:a time limit",
      " 130:Ctrl-C; what ran is saved",
      " 138:a rank died",
      " 143:SIGTERM; what ran is saved",
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  braid run notebooks/02_tune_split_count.ipynb",
      "  braid run tune.ipynb -n 8 -p m=8192 -p splits=1,2,4 -o tuned.ipynb",
      "  braid run tune.ipynb -f sizes.yaml --cell-timeout 60 --junit tune.xml",
    })
final class RunCommand implements Callable<Integer> {
  @picocli.CommandLine.Parameters(
      paramLabel = "NOTEBOOK",
      description = "The notebook; it is not changed.")
  private Path file = Path.of("");

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
      names = {"-o", "--output"},
      paramLabel = "OUT.ipynb",
      description = "Where to save it. Default: NAME.out.ipynb in the current directory.")
  private @Nullable Path output;

  @Option(
      names = "--timeout",
      paramLabel = "SECONDS",
      description = "Ends the run after this time.")
  private @Nullable String timeout;

  @Option(
      names = "--cell-timeout",
      paramLabel = "SECONDS",
      description = "Ends the run where one cell takes longer than this.")
  private @Nullable String cellTimeout;

  @Option(
      names = "--junit",
      paramLabel = "FILE",
      description = "Writes a JUnit XML report for CI: one test case a cell.")
  private @Nullable Path junit;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var limits =
        new TimeLimits(seconds("--cell-timeout", cellTimeout), seconds("--timeout", timeout));
    var notebook = Notebook.read(file);
    notebook.requireJava();
    var note = ParameterCell.inject(parameters(), notebook);
    var home = Path.of("").toAbsolutePath();
    var env = Env.here();
    var options = ranks.session(env, env.machine(), home);
    var saved = writable("-o", output == null ? outputBeside(home) : output);
    var report = junit == null ? Optional.<Path>empty() : Optional.of(writable("--junit", junit));

    var err = spec.commandLine().getErr();
    note.ifPresent(text -> err.println("braid: note: " + text));
    var experiment =
        new Experiment(home.resolve("runs"), () -> facts(notebook, saved, options, env));
    RunResult result;
    try (var progress = progress(spec)) {
      var runner = new NotebookRunner(notebook, saved, limits, progress);
      result = new RecordedRun(notebook, saved, runner, experiment, err).on(options);
    }
    if (report.isPresent()) {
      JUnitReport.write(result, report.get());
    }
    summarise(spec, result, options, experiment, report);
    return result.exitCode().code();
  }

  private JsonObject facts(Notebook notebook, Path saved, SessionOptions options, Env env) {
    return new RunFacts(arguments(spec), options.home())
        .notebook(notebook, file, saved)
        .limits(Optional.ofNullable(timeout), Optional.ofNullable(cellTimeout))
        .of(options, env);
  }

  /// Of the whole command line.
  static List<String> arguments(CommandSpec spec) {
    return spec.root().commandLine().getParseResult().originalArgs();
  }

  static RunProgress progress(CommandSpec spec) {
    var err = spec.commandLine().getErr();
    return Terminal.isStandardError()
        ? new TerminalProgress(err, Terminal.columns(Env.here()))
        : new PlainProgress(err);
  }

  private Parameters parameters() {
    var given = Parameters.given();
    files.forEach(given::file);
    yaml.forEach(given::yaml);
    typed.forEach(given::typed);
    raw.forEach(given::raw);
    return given.build();
  }

  private Path outputBeside(Path directory) {
    return outputBeside(directory, file);
  }

  static Path outputBeside(Path directory, Path file) {
    var name = String.valueOf(file.getFileName()).replaceFirst("\\.ipynb$", "");
    return directory.resolve(name + ".out.ipynb");
  }

  /// The file, if it can be written; else a mistake of that option.
  static Path writable(String option, Path file) {
    var directory = file.toAbsolutePath().getParent();
    var reason =
        Files.isDirectory(file)
            ? "is a directory; name a file in it"
            : directory == null || !Files.isDirectory(directory)
                ? "is in a directory that does not exist; try mkdir -p " + directory
                : !Files.isWritable(Files.exists(file) ? file : directory)
                    ? "cannot be written; name another place"
                    : "";
    if (!reason.isEmpty()) {
      throw new BraidException(option + " must be a file to write but " + file + " " + reason);
    }
    return file;
  }

  /// How long that option says; else a mistake of it.
  static Optional<Duration> seconds(String option, @Nullable String text) {
    if (text == null) {
      return Optional.empty();
    }
    double seconds;
    try {
      seconds = Double.parseDouble(text);
    } catch (NumberFormatException e) {
      seconds = Double.NaN;
    }
    if (!(seconds > 0 && seconds < Integer.MAX_VALUE)) {
      throw new BraidException(
          option
              + " must be a positive number of seconds but was "
              + text
              + "; try "
              + option
              + " 600");
    }
    return Optional.of(Duration.ofMillis((long) Math.ceil(seconds * 1e3)));
  }

  static void summarise(
      CommandSpec spec,
      RunResult result,
      SessionOptions options,
      Experiment experiment,
      Optional<Path> report) {
    var out = spec.commandLine().getOut();
    out.println(RunSummary.line(result, options.ranks()));
    out.println("backend " + options.backend());
    out.println("saved   " + result.output());
    if (report.isPresent()) {
      out.println("junit   " + report.get());
    }
    if (experiment.hasBegun()) {
      for (var id : experiment.manifest().data()) {
        out.println("data    " + experiment.directory().resolveSibling(id));
      }
      out.println("run     " + experiment.directory());
    }
    out.flush();
  }
}
