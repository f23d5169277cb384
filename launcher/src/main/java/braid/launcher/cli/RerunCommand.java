package braid.launcher.cli;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.HostOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.Repetition;
import braid.launcher.cli.run.ReportFacts;
import braid.launcher.cli.run.ReportOptions;
import braid.launcher.experiment.Experiments;
import java.io.IOException;
import java.nio.file.Path;
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
        "Repeats a run: the same notebook, parameters, ranks, launcher, backend, link, memory and"
            + " limits. Prints first what has changed.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:every cell ran",
      " 1:a cell failed, or the outputs could not be saved",
      " 2:there is no such run, or it cannot be repeated here; nothing was run",
      " 3, 4, 130, 138, 143:as of run",
    },
    footer = {
      "  braid rerun 20260131T235959000Z-0a1b2c",
      "  braid rerun latest && braid compare previous latest",
      "  braid rerun latest --listen 10.0.0.2",
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
      description = "Where to save it. Default: NAME.out.ipynb in the folder of the run, runs/ID.")
  private @Nullable Path output;

  @Mixin private HostOptions hosts = new HostOptions();

  @Mixin private ReportOptions written = new ReportOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var env = Env.here();
    var err = spec.commandLine().getErr();
    var found = new Experiments(WorkingDirectory.called().resolve("runs")).find(name);
    var repetition = new Repetition(found, RunCommand.arguments(spec), env, hosts);
    var inputs = repetition.inputs(output);
    var reports = written.of(inputs);
    repetition.printChanges(inputs, err);
    var facts = ReportFacts.of(RunCommand.arguments(spec), repetition.options(), env.machine());
    return repetition.run(inputs, reports.ending(facts, spec.commandLine().getOut(), err), err);
  }
}
