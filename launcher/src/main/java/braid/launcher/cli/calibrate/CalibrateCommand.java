package braid.launcher.cli.calibrate;

import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.notebook.run.RunProgress;
import braid.launcher.notebook.run.StopRequest;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.model.MimeBundle;
import braid.schedule.simulation.Machine;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid calibrate`: measures this machine into a file for predictions.
@Command(
    name = "calibrate",
    description =
        "Measures this machine by pipelines on all ranks, and keeps it as a file that"
            + " Machine.parse and bench gpu --machine read. Run it on an idle machine.",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {
      " 0:measured, and written",
      " 1:the measurement failed",
      " 2:a mistake in the options; nothing was measured",
      " 130:Ctrl-C",
      " 138:a rank died",
      " 143:SIGTERM",
    },
    footerHeading = "%nExamples:%n",
    footer = {
      "  braid calibrate -n 4",
      "  braid calibrate -n 2 --backend host --link 1GB/s,20us -o two_ranks.txt",
      "",
      "It was tried on the host backend only. On GPUs the same pipelines are measured, but no such",
      "run has been compared with predictions. The file lists what was not measured.",
    })
public final class CalibrateCommand implements Callable<Integer> {
  /// Begins the line of the cell with the file that it has written.
  private static final String WRITTEN = "calibration ";

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description =
          "Where to write the machine. Default: in the cache folder, where predictions on GPUs with"
              + " that number of ranks find it.")
  private @Nullable Path output;

  @Mixin private RankOptions ranks = new RankOptions();

  @Spec private CommandSpec spec = CommandSpec.create();

  /// Output of the cell: its file, and progress.
  private static final class Output implements CellOutput {
    private final RunProgress progress;
    private final PrintWriter err;
    private Optional<Path> written = Optional.empty();

    Output(RunProgress progress, PrintWriter err) {
      this.progress = progress;
      this.err = err;
    }

    Path written() {
      return written.orElseThrow(
          () -> new IllegalStateException("the calibration has ended without a file"));
    }

    @Override
    public void stdout(String text) {
      text.lines()
          .filter(line -> line.contains(WRITTEN))
          .map(line -> line.substring(line.indexOf(WRITTEN) + WRITTEN.length()))
          .forEach(file -> written = Optional.of(Path.of(file)));
    }

    @Override
    public void stderr(String text) {
      err.print(text);
      err.flush();
    }

    @Override
    public void display(MimeBundle bundle, String displayId) {
      update(bundle, displayId);
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {
      if (bundle.data().containsKey(MimeBundle.PROGRESS)) {
        progress.cellProgressed(bundle.text().strip());
      }
    }
  }

  @Override
  public Integer call() throws IOException {
    var env = Env.here();
    var home = WorkingDirectory.called();
    var options = ranks.session(env, env.machine(), home);
    requireTimes(options);
    var file = output == null ? "" : output.toAbsolutePath().toString();
    var err = spec.commandLine().getErr();
    var stop = new StopRequest();
    Output cell;
    Optional<CellFailure> failure;
    try (var progress = NotebookQueue.progress(err)) {
      var receiver = new Output(progress, err);
      cell = receiver;
      failure =
          SignalledSession.run(
              options,
              stop::request,
              session -> {
                progress.started(1, options.ranks());
                progress.cellStarted("cell 1", "calibrating");
                return measure(session, file, receiver, stop);
              });
    }
    if (failure.isPresent()) {
      failure.get().traceback().forEach(err::println);
      err.flush();
      return CellAttempt.exitCode(failure.get()).code();
    }
    var machine = Machine.parse(Files.readString(cell.written()));
    var out = spec.commandLine().getOut();
    out.print(CalibratedTable.of(machine));
    out.println("written to " + cell.written());
    out.flush();
    return ExitCode.OK.code();
  }

  private static void requireTimes(SessionOptions options) {
    if (options.backend().sharesGpus()) {
      throw new BraidException(
          "calibrate needs times that count but ranks share a GPU; try -n with as many ranks as GPUs, or --backend host");
    }
  }

  /// @param file where to write the machine; empty for the cache folder
  private static Optional<CellFailure> measure(
      Session session, String file, CellOutput output, StopRequest stop) {
    var source =
        """
        var calibrator = Calibrator.on(world);
        var machine = calibrator.measure();
        if (world.rank() == 0) {
          var file =
              %1$s.isEmpty() ? calibrator.keep(machine) : Calibrator.save(machine, Path.of(%1$s));
          System.out.println("%2$s" + file);
        }"""
            .formatted(new JsonPrimitive(file), WRITTEN);
    return new CellAttempt(session, new Cell("calibrate", source), output)
        .run(TimeLimits.none(), stop)
        .failure();
  }
}
