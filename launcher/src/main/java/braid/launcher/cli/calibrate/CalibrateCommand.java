package braid.launcher.cli.calibrate;

import braid.launcher.ExitCode;
import braid.launcher.OutputFile;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import braid.schedule.simulation.Machine;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
    exitCodeList = {
      " 0:measured, and written",
      " 1:the measurement failed",
      " 2:a mistake in the options; nothing was measured",
      " 130:Ctrl-C",
      " 138:a rank died",
      " 143:SIGTERM",
    },
    footer = {
      "  braid calibrate -n 4",
      "  braid calibrate -n 2 --backend host --link 1GB/s,20us -o two_ranks.txt",
      "",
      "The file lists what was not measured. Ranks that share a GPU are refused: their times are no",
      "evidence.",
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

  @Override
  public Integer call() throws IOException {
    var env = Env.here();
    var home = WorkingDirectory.called();
    var options = ranks.session(env, env.machine(), home);
    requireTimes(options);
    if (output != null) {
      OutputFile.writable("--output", output);
    }
    var file =
        new JsonPrimitive(output == null ? "" : output.toAbsolutePath().toString()).toString();
    var measured =
        MeasuringCell.run(
            options,
            "calibrating",
            """
            var calibrator = Calibrator.on(world);
            var machine = calibrator.measure();
            if (world.rank() == 0) {
              var file =
                  %1$s.isEmpty() ? calibrator.keep(machine) : Calibrator.save(machine, Path.of(%1$s));
              System.out.println("%2$s" + file);
            }"""
                .formatted(file, WRITTEN),
            spec.commandLine().getErr());
    if (measured.code() != ExitCode.OK.code()) {
      return measured.code();
    }
    var written = written(measured.printed());
    var out = spec.commandLine().getOut();
    out.print(CalibratedTable.of(Machine.parse(Files.readString(written))));
    out.println("written to " + written);
    out.flush();
    return ExitCode.OK.code();
  }

  private static Path written(String printed) {
    return printed
        .lines()
        .filter(line -> line.contains(WRITTEN))
        .map(line -> Path.of(line.substring(line.indexOf(WRITTEN) + WRITTEN.length())))
        .findFirst()
        .orElseThrow(() -> new IllegalStateException("the calibration has ended without a file"));
  }

  private static void requireTimes(SessionOptions options) {
    if (options.backend().sharesGpus()) {
      throw new BraidException(
          "calibrate needs times that count but ranks share a GPU; try -n with as many ranks as GPUs, or --backend host");
    }
  }
}
