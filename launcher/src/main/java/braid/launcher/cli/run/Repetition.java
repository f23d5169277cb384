package braid.launcher.cli.run;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.HostOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.experiment.Differences;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Experiments.Found;
import braid.launcher.experiment.Manifest;
import braid.launcher.machine.BackendChoice;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.output.OutputLimit;
import braid.launcher.ranks.LocalRanks;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.MemoryKind;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Repeats a stored run on fresh ranks: the kept notebook, its parameters, ranks, their launcher,
/// backend, link, memory, limits and working directory.
public final class Repetition {
  private final Found found;
  private final Manifest before;
  private final List<String> command;
  private final Env env;
  private final Path home = WorkingDirectory.called();
  private final Optional<Path> cwd;
  private final Path original;
  private final SessionOptions options;
  private final boolean startsAgain;

  /// Enters the run's working directory, which may replace this process.
  ///
  /// @param command arguments of `braid`
  /// @param hosts options of its ranks; those of the run are added
  /// @throws BraidException if the run cannot be repeated here
  public Repetition(Found found, List<String> command, Env env, HostOptions hosts)
      throws IOException {
    this(found, command, env, hosts, /* startsAgain= */ false);
  }

  /// Returns another start of a run.
  ///
  /// @throws BraidException as the constructor
  public static Repetition start(Found found, List<String> command, Env env, HostOptions hosts)
      throws IOException {
    return new Repetition(found, command, env, hosts, /* startsAgain= */ true);
  }

  private Repetition(
      Found found, List<String> command, Env env, HostOptions hosts, boolean startsAgain)
      throws IOException {
    this.startsAgain = startsAgain;
    this.found = found;
    this.command = command;
    this.env = env;
    before = found.manifest();
    cwd = before.text("workingDirectory").map(Path::of);
    cwd.ifPresent(
        directory -> WorkingDirectory.enter("the directory of " + before.id(), directory));
    if (!Files.isRegularFile(kept())) {
      throw new BraidException(
          "a run must have kept its notebook to be repeated but %s was a session in Jupyter; save the notebook and try braid run"
              .formatted(before.id()));
    }
    hosts.completeFrom(before.id(), before.launcherOptions());
    original = Path.of(before.text("notebook.path").orElse(kept().toString()));
    options = options(hosts);
  }

  private Path kept() {
    return found.directory().resolve(Experiment.NOTEBOOK);
  }

  public SessionOptions options() {
    return options;
  }

  /// Returns the notebook with its output file, ready to run.
  ///
  /// @param output output file; by default one in the folder of the new run
  public RunInputs inputs(@Nullable Path output) throws IOException {
    var notebook = Notebook.parse(Files.readString(kept()), original.toString());
    return RunInputs.again(notebook, original, output);
  }

  /// Runs it.
  public <T> T run(RunInputs inputs, NotebookQueue.Ending<T> ending, PrintWriter err)
      throws IOException {
    var timeout = before.text("limits.timeout").orElse(null);
    var cellTimeout = before.text("limits.cellTimeout").orElse(null);
    var queue =
        new NotebookQueue(
            inputs.all(),
            options,
            TimeLimits.of(timeout, cellTimeout),
            false,
            false,
            input ->
                new Experiment(home.resolve("runs"), folder -> facts(input, input.output(folder))),
            err);
    return queue.run(ending);
  }

  private JsonObject facts(RunInput input, Path output) {
    var facts = new RunFacts(command, home).workingDirectory(cwd.orElse(null));
    return (startsAgain ? facts.startOf(before.firstStart()) : facts.repeating(before.id()))
        .notebook(input.notebook(), original, output)
        .limits(before.text("limits.timeout"), before.text("limits.cellTimeout"))
        .of(options, env);
  }

  /// Returns the options of the earlier run; refuses those that are unavailable now.
  private SessionOptions options(HostOptions hosts) {
    var from = "run " + before.id();
    var machine = env.machine();
    var count = before.text("session.ranks").orElse("unknown");
    boolean local = hosts.isLocal();
    int ranks =
        local ? machine.parse("the ranks of " + from, count) : hosts.count(Optional.of(count), env);
    var backend =
        before
            .text("session.backend")
            .map(name -> BackendKind.parse(name, "the backend of " + from))
            .orElse(BackendKind.AUTO);
    var sharing = before.text("session.sharedGpus").map(_ -> from);
    return new SessionOptions(
        ranks,
        local
            ? BackendChoice.of(backend, from, ranks, machine.gpus(), sharing)
            : hosts.backend(backend, from, sharing),
        before.text("session.link"),
        home,
        before.text("session.outputLimit").map(OutputLimit::parse).orElse(OutputLimit.DEFAULT),
        before.text("session.memory").map(MemoryKind::parse),
        before
            .text("session.untilDecidedSeconds")
            .filter(text -> text.matches("[1-9][0-9]{0,8}"))
            .map(text -> Duration.ofSeconds(Long.parseLong(text))),
        before.texts("session.variables"),
        local ? LocalRanks.HERE : hosts.starter(ranks, env));
  }

  /// Prints what has changed since the run.
  public void printChanges(RunInputs inputs, PrintWriter err) {
    var input = inputs.all().getFirst();
    var now = facts(input, input.output(home));
    now.addProperty("id", "now");
    var differences = new ArrayList<>(Differences.between(before, new Manifest(now)).all());
    changed().ifPresent(differences::addFirst);
    if (differences.isEmpty()) {
      err.println("braid: repeats " + before.id() + "; nothing has changed");
    } else {
      err.println("braid: repeats %s; changed since then:".formatted(before.id()));
      new Differences(differences).lines("then", "now").forEach(err::println);
    }
    err.flush();
  }

  /// Returns the difference between the kept notebook, which is run, and its original file.
  private Optional<Differences.Difference> changed() {
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
