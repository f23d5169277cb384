package braid.launcher.bench;

import braid.launcher.ExitCode;
import braid.launcher.machine.RankCount;
import braid.model.BraidException;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid bench front`: latency of ranks and cells, and their memory.
@Command(
    name = "front",
    description = "Times starts and cells, and measures memory, of Braid and ipyparallel.",
    mixinStandardHelpOptions = true,
    exitCodeList = {" 0:measured, whether limits were met or not", " 2:a mistake in the options"},
    footer = {"  braid bench front", "  braid bench front --starts 9 > docs/results/front.md"})
final class FrontCommand implements Callable<Integer> {
  private static final int MAX_REPEATS = 10_000;
  private static final List<Integer> RANK_COUNTS = List.of(1, 4, 8);

  @Option(
      names = "--cells",
      paramLabel = "COUNT",
      description = "Timed cells of each kind in each process. Default: ${DEFAULT-VALUE}.")
  private int cells = 50;

  @Option(
      names = "--warm-up",
      paramLabel = "COUNT",
      description = "Warm-up cells of each kind in each process. Default: ${DEFAULT-VALUE}.")
  private int warmUp = 10;

  @Option(
      names = "--starts",
      paramLabel = "COUNT",
      description = "Fresh processes of each size. Default: ${DEFAULT-VALUE}.")
  private int starts = 5;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException, InterruptedException {
    check("--cells", cells, 1);
    check("--warm-up", warmUp, 0);
    check("--starts", starts, 1);
    var console = spec.commandLine();
    var bench =
        new FrontBench(
            RANK_COUNTS.stream().filter(each -> each <= RankCount.ofHost().most()).toList(),
            starts,
            warmUp,
            cells,
            line -> {
              console.getErr().println("braid bench: " + line);
              console.getErr().flush();
            });
    console.getOut().print(bench.report());
    console.getOut().flush();
    return ExitCode.OK.code();
  }

  private static void check(String option, int count, int least) {
    if (count < least || count > MAX_REPEATS) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s %d"
              .formatted(option, least, MAX_REPEATS, count, option, Math.max(least, 5)));
    }
  }
}
