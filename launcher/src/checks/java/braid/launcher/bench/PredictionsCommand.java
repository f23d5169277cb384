package braid.launcher.bench;

import braid.MeasuredCombinations;
import braid.launcher.ExitCode;
import braid.launcher.InputFile;
import braid.launcher.OutputFile;
import braid.launcher.cli.calibrate.MeasuringCell;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.natives.WholeFile;
import braid.schedule.simulation.Calibration;
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

/// `braid bench predictions`: errors of predictions on a machine that is calibrated meanwhile.
@Command(
    name = "predictions",
    description =
        "Calibrates this machine, measures random combinations of other sizes in turns with it, and"
            + " prints the errors of their predictions by pattern, method, dtype and size.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:measured",
      " 1:the measurement failed, or --check found a median error that is worse by more than a tenth",
      " 2:a mistake in the options",
    },
    footer = {
      "  braid bench predictions -n 2 --backend host --record predictions.txt",
      "  braid bench predictions -n 1 --combinations 40 --rounds 2",
      "  braid bench predictions -n 2 --backend host --check predictions.txt",
    })
final class PredictionsCommand implements Callable<Integer> {
  private static final int MOST_COMBINATIONS = 200;
  private static final int MOST_ROUNDS = 100;
  private static final int MOST_MEBIBYTES = 1;

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = "--seed",
      paramLabel = "NUMBER",
      description =
          "Seed of the combinations. Default: ${DEFAULT-VALUE}; with --check the record's.")
  private long seed = 1;

  @Option(
      names = "--combinations",
      paramLabel = "COUNT",
      description = "Number of combinations. Default: ${DEFAULT-VALUE}; with --check the record's.")
  private int combinations = 40;

  @Option(
      names = "--rounds",
      paramLabel = "COUNT",
      description =
          "Rounds of the calibration and the combinations in turns. Default: ${DEFAULT-VALUE}.")
  private int rounds = 4;

  @Option(
      names = "--record",
      paramLabel = "FILE",
      description = "Writes times, errors and machine to this file.")
  private @Nullable Path record;

  @Option(
      names = "--check",
      paramLabel = "FILE",
      description = "Compares the errors with those of this record.")
  private @Nullable Path checked;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    within("--combinations", combinations, MOST_COMBINATIONS);
    within("--rounds", rounds, MOST_ROUNDS);
    if (record != null) {
      OutputFile.writable("--record", record);
    }
    var env = Env.here();
    var options = ranks.session(env, env.machine(), Path.of("").toAbsolutePath());
    var before = checked == null ? "" : read(checked);
    if (checked != null) {
      var recorded = MeasuredCombinations.parse(before);
      requireAlike(recorded, options);
      seed = recorded.seed();
      combinations = recorded.nanos().size();
    }
    if (options.backend().sharesGpus()) {
      throw new BraidException(
          "bench predictions needs times that count but ranks share a GPU; try -n with as many ranks as GPUs, or --backend host");
    }
    var file = Files.createTempFile("braid-predictions", ".txt");
    try {
      var source =
          """
          var measured = braid.MeasuredCombinations.measure(world, %dL, %d, %d);
          if (world.rank() == 0) {
            Files.writeString(Path.of(%s), measured.text());
          }"""
              .formatted(seed, combinations, rounds, new JsonPrimitive(file.toString()));
      int code =
          MeasuringCell.run(options, "measuring", source, spec.commandLine().getErr()).code();
      return code == ExitCode.OK.code()
          ? report(MeasuredCombinations.parse(Files.readString(file)), before)
          : code;
    } finally {
      Files.delete(file);
    }
  }

  private static String read(Path file) {
    try {
      return InputFile.read(file, MOST_MEBIBYTES);
    } catch (IOException e) {
      throw new BraidException(
          "--check must be a file that --record has written but %s %s"
              .formatted(file, InputFile.reason(e)),
          e);
    }
  }

  /// Refuses a record of other combinations: they follow from the ranks and the backend too.
  private static void requireAlike(MeasuredCombinations recorded, SessionOptions options) {
    boolean onHost = recorded.machine().links().serial();
    if (recorded.ranks() != options.ranks() || onHost == options.backend().isCuda()) {
      throw new BraidException(
          "--check must be a record of %d ranks, backend %s, but is of %d, backend %s; try -n %3$d --backend %4$s"
              .formatted(
                  options.ranks(),
                  options.backend().kind(),
                  recorded.ranks(),
                  onHost ? BackendKind.HOST : BackendKind.CUDA));
    }
  }

  private int report(MeasuredCombinations measured, String before) throws IOException {
    if (record != null) {
      WholeFile.write(record, measured.text());
    }
    var machine = measured.machine();
    var plain =
        machine.links().serial()
            ? Machine.ofThisHost(measured.ranks())
            : Machine.nearest(machine.calibration().map(Calibration::device).orElseThrow());
    var out = spec.commandLine().getOut();
    out.println(machine.title());
    out.println(measured.table());
    out.println(measured.errorTable());
    out.println(plain.title());
    out.println(measured.predictedOn(plain).errorTable());
    var worse =
        MeasuredCombinations.worsened(
            MeasuredCombinations.recordedErrors(before), measured.errors());
    worse.forEach(line -> out.println("WORSE " + line));
    out.flush();
    return worse.isEmpty() ? ExitCode.OK.code() : ExitCode.CELL_FAILED.code();
  }

  private static void within(String option, int value, int most) {
    if (value < 1 || value > most) {
      throw new BraidException(
          "%s must be 1..%d but was %d; try %s 4".formatted(option, most, value, option));
    }
  }
}
