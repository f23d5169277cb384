package braid.launcher.bench;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Installation;
import braid.launcher.experiment.Surroundings;
import braid.model.BraidException;
import braid.natives.WholeFolder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid bench scale`: the front's own cost at many ranks.
@Command(
    name = "scale",
    description =
        "Times the start and cells of a front whose ranks join over TLS, and"
            + " measures its memory. The ranks only speak the protocol, in one process on this host.",
    mixinStandardHelpOptions = true,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {" 0:measured, whether the limit was met or not", " 2:a mistake in the options"},
    footerHeading = "%nExamples:%n",
    footer = {"  braid bench scale", "  braid bench scale --starts 9"})
final class ScaleCommand implements Callable<Integer> {
  private static final int MOST_RANKS = 1024;

  /// Limit of the time to ready, with 64 ranks.
  private static final int LIMITED_RANKS = 64;

  private static final double LIMIT_SECONDS = 3;
  private static final int CELLS = 50;
  private static final int MOST_STARTS = 1000;
  private static final Duration PATIENCE = Duration.ofSeconds(90);

  @Option(
      names = "--starts",
      paramLabel = "COUNT",
      description = "Fresh fronts of each size. Default: ${DEFAULT-VALUE}.")
  private int starts = 5;

  @Option(
      names = "--ranks",
      split = ",",
      paramLabel = "COUNT",
      description = "Numbers of ranks. Default: ${DEFAULT-VALUE}.")
  private List<Integer> counts = List.of(8, 64, 256);

  @Spec private CommandSpec spec = CommandSpec.create();

  /// Results of one front.
  private record Front(double readySeconds, ScaleProbe.Result result) {}

  @Override
  public Integer call() throws IOException, InterruptedException {
    if (starts < 1 || starts > MOST_STARTS) {
      throw new BraidException(
          "--starts must be 1..%d but was %d; try --starts 5".formatted(MOST_STARTS, starts));
    }
    for (int count : counts) {
      if (count < 1 || count > MOST_RANKS) {
        throw new BraidException(
            "--ranks must be 1..%d each but has %d; try --ranks 8,64".formatted(MOST_RANKS, count));
      }
    }
    var machine = Surroundings.machine();
    var fronts = new TreeMap<Integer, List<Front>>();
    for (int start = 1; start <= starts; start++) {
      for (int ranks : counts) {
        progress("start %d of %d, %d ranks".formatted(start, starts, ranks));
        fronts.computeIfAbsent(ranks, _ -> new ArrayList<>()).add(front(ranks));
      }
    }
    var out = spec.commandLine().getOut();
    out.printf(
        "Measured by `braid bench scale` on %s: %s, %d cores; load %.1f before.%n%n",
        Instant.now().truncatedTo(ChronoUnit.SECONDS),
        machine.get("processor").getAsString(),
        machine.get("cores").getAsInt(),
        machine.get("load").getAsDouble());
    out.println(
        "| ranks | time to ready, s | empty cell, ms | the front, resident, MiB | threads |");
    out.println("|--:|---|---|---|--:|");
    fronts.forEach(
        (ranks, all) ->
            out.printf(
                "| %d | %s%s | %s | %s | %.0f |%n",
                ranks,
                FrontBench.words(Measure.range(all.stream().map(Front::readySeconds).toList())),
                ranks == LIMITED_RANKS ? ", limit " + limit(all) : "",
                FrontBench.words(
                    Measure.tenths(
                        all.stream().flatMap(each -> each.result.millis().stream()).toList())),
                FrontBench.words(
                    Measure.range(all.stream().map(each -> each.result.residentMiB()).toList())),
                Measure.range(all.stream().map(each -> each.result.threads()).toList()).median()));
    out.flush();
    return ExitCode.OK.code();
  }

  private static String limit(List<Front> fronts) {
    return FrontBench.verdict(
        LIMIT_SECONDS, Measure.range(fronts.stream().map(Front::readySeconds).toList()));
  }

  private void progress(String line) {
    var err = spec.commandLine().getErr();
    err.println("braid bench: " + line);
    err.flush();
  }

  /// Starts the ranks, which wait, then a front.
  private static Front front(int ranks) throws IOException, InterruptedException {
    var directory = Files.createTempDirectory("braid-bench");
    var join = Map.of("BRAID_JOIN", "127.0.0.1:%d/%s".formatted(freePort(), "0".repeat(64)));
    try (var waiting = child("ranks", directory, join, "scale-ranks", ranks)) {
      waiting.expect("waiting");
      try (var front = child("the front", directory, join, "scale-probe", ranks, CELLS)) {
        double ready = front.expect("ready").seconds();
        return new Front(ready, ScaleProbe.Result.parse(front.expect("{").line()));
      }
    } finally {
      WholeFolder.delete(directory);
    }
  }

  private static TimedChild child(
      String name, Path directory, Map<String, String> join, String command, int... arguments)
      throws IOException {
    var line = new ArrayList<>(Installation.command());
    line.addAll(List.of("bench", command));
    for (int argument : arguments) {
      line.add(Integer.toString(argument));
    }
    return new TimedChild(
        name, line, join, Files.createDirectories(directory.resolve(command)), PATIENCE);
  }

  private static int freePort() throws IOException {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
