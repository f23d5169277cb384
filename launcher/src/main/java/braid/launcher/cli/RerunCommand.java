package braid.launcher.cli;

import braid.launcher.cli.experiment.RunFacts;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.ReportFacts;
import braid.launcher.cli.run.ReportOptions;
import braid.launcher.cli.run.RunInputs;
import braid.launcher.experiment.Differences;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Manifest;
import braid.launcher.machine.BackendChoice;
import braid.launcher.machine.RankCount;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.output.OutputLimit;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.MemoryKind;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `braid rerun`: repeats the run of a manifest, after printing how the surroundings differ.
@Command(
    name = "rerun",
    description =
        "Repeats a run: the same notebook, parameters, ranks, backend, link, memory and limits."
            + " Prints first what has changed.",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      " 0:every cell ran",
      " 1:a cell failed, or the outputs could not be saved",
      " 2:there is no such run, or it cannot be repeated here; nothing was run",
      " 3, 4, 130, 138, 143:as of run",
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  braid rerun 20260131T235959000Z-0a1b2c",
      "  braid rerun latest -o again.ipynb && braid compare previous latest",
    })
final class RerunCommand implements Callable<Integer> {
  @Parameters(
      paramLabel = "RUN",
      description =
          "Its id, a unique beginning or the six characters at the end of it, a path, latest or"
              + " previous.")
  private String name = "";

  @Option(
      names = {"-o", "--output"},
      paramLabel = "OUT.ipynb",
      description = "Where to save it. Default: NAME.out.ipynb in the current directory.")
  private @Nullable Path output;

  @Mixin private ReportOptions written = new ReportOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var home = WorkingDirectory.called();
    var env = Env.here();
    var runs = home.resolve("runs");
    var found = new Experiments(runs).find(name);
    var before = found.manifest();
    var cwd = before.text("workingDirectory").map(Path::of);
    cwd.ifPresent(
        directory -> WorkingDirectory.enter("the directory of " + before.id(), directory));
    var kept = found.directory().resolve(Experiment.NOTEBOOK);
    if (!Files.isRegularFile(kept)) {
      throw new BraidException(
          "a run must have kept its notebook to be repeated but %s was a session in Jupyter; save the notebook and try braid run"
              .formatted(before.id()));
    }
    var options = options(before, env.machine(), home);
    var original = Path.of(before.text("notebook.path").orElse(kept.toString()));
    var notebook = Notebook.parse(Files.readString(kept), original.toString());
    var inputs = RunInputs.again(notebook, original, output);
    var reports = written.of(inputs);
    var cellTimeout = before.text("limits.cellTimeout");
    var timeout = before.text("limits.timeout");
    var limits =
        new TimeLimits(
            RunCommand.seconds("--cell-timeout", cellTimeout.orElse(null)),
            RunCommand.seconds("--timeout", timeout.orElse(null)));
    var err = spec.commandLine().getErr();
    var facts =
        new RunFacts(RunCommand.arguments(spec), home)
            .workingDirectory(cwd.orElse(null))
            .repeating(Optional.of(before.id()))
            .notebook(notebook, original, inputs.all().getFirst().output())
            .limits(timeout, cellTimeout)
            .of(options, env);
    print(before, facts, original, err);
    var queue =
        new NotebookQueue(
            inputs.all(),
            options,
            limits,
            false,
            false,
            _ -> new Experiment(runs, () -> facts),
            err);
    var reportFacts = ReportFacts.of(RunCommand.arguments(spec), options, env.machine());
    return queue.run(reports.ending(reportFacts, spec.commandLine().getOut(), err));
  }

  /// Returns the options of the earlier run; refuses those that are unavailable now.
  private static SessionOptions options(Manifest before, RankCount machine, Path home) {
    var from = "run " + before.id();
    int ranks =
        machine.parse("the ranks of " + from, before.text("session.ranks").orElse("unknown"));
    var backend =
        before
            .text("session.backend")
            .map(name -> BackendKind.parse(name, "the backend of " + from))
            .orElse(BackendKind.AUTO);
    return new SessionOptions(
        ranks,
        BackendChoice.of(
            backend,
            from,
            ranks,
            machine.gpus(),
            before.text("session.sharedGpus").isPresent() ? Optional.of(from) : Optional.empty()),
        before.text("session.link"),
        home,
        before.text("session.outputLimit").map(OutputLimit::parse).orElse(OutputLimit.DEFAULT),
        before.text("session.memory").map(MemoryKind::parse));
  }

  private static void print(Manifest before, JsonObject facts, Path original, PrintWriter err) {
    var now = facts.deepCopy();
    now.addProperty("id", "now");
    var differences = new ArrayList<>(Differences.between(before, new Manifest(now)).all());
    changed(before, original).ifPresent(differences::addFirst);
    if (differences.isEmpty()) {
      err.println("braid: repeats " + before.id() + "; nothing has changed");
    } else {
      err.println("braid: repeats %s; changed since then:".formatted(before.id()));
      new Differences(differences).lines("then", "now").forEach(err::println);
    }
    err.flush();
  }

  /// Returns the difference between the kept notebook, which is run, and its original file.
  private static Optional<Differences.Difference> changed(Manifest before, Path original) {
    String now;
    if (!Files.isRegularFile(original)) {
      now = "missing; the kept copy is run";
    } else {
      try {
        var digest = RunFacts.digest(Notebook.read(original));
        if (before.text("notebook.sha256").equals(Optional.of(digest))) {
          return Optional.empty();
        }
        now = "changed; the kept copy is run";
      } catch (BraidException e) {
        now = "not a notebook any more; the kept copy is run";
      }
    }
    return Optional.of(
        new Differences.Difference(String.valueOf(original.getFileName()), "the kept copy", now));
  }
}
