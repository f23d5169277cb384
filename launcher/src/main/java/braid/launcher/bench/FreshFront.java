package braid.launcher.bench;

import braid.model.BraidException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/// A `braid` process, timed from the moment a shell would start it, and weighed when it idles.
record FreshFront(
    double readySeconds,
    double firstSeconds,
    ProcessMemory front,
    List<ProcessMemory> ranks,
    int processes) {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /// What must not come from this JVM's own start: an agent would slow the one that is timed, and a
  /// second one would write where the first one does.
  private static final List<String> NOT_AGAIN =
      List.of(
          "-javaagent:",
          "-agentlib:",
          "-agentpath:",
          "-Xrunjdwp",
          "-XX:StartFlightRecording",
          "-XX:AOTCacheOutput",
          "-Dbraid.rank.aot.output");

  static FreshFront start(int ranks, Path directory) throws IOException, InterruptedException {
    var command = new ArrayList<>(braid());
    command.addAll(
        List.of("bench", "start-probe", "--ranks", Integer.toString(ranks), "--home", "."));
    try (var child = new TimedChild("braid", command, Map.of(), directory, PATIENCE)) {
      var ready = child.expect(StartProbe.READY);
      var first = child.expect(StartProbe.FIRST);
      if (!first.line().equals(StartProbe.FIRST + "2")) {
        throw new BraidException("the first cell of a fresh braid gave " + first.line());
      }
      var children = child.descendants();
      return new FreshFront(
          ready.seconds(),
          first.seconds(),
          ProcessMemory.of(child.handle()).orElseThrow(() -> gone("front")),
          children.stream()
              .map(rank -> ProcessMemory.of(rank).orElseThrow(() -> gone("rank")))
              .toList(),
          1 + children.size());
    }
  }

  private static BraidException gone(String what) {
    return new BraidException("a " + what + " cannot be weighed: it is gone, or there is no /proc");
  }

  /// The script, which is what users start; else this JVM again, with the same flags and caches.
  private static List<String> braid() {
    var home = System.getProperty("braid.home");
    if (home != null && Files.isExecutable(Path.of(home, "braid"))) {
      return List.of(Path.of(home, "braid").toString());
    }
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> NOT_AGAIN.stream().noneMatch(argument::startsWith))
        .forEach(command::add);
    command.addAll(
        List.of("-cp", System.getProperty("java.class.path"), "braid.launcher.cli.Braid"));
    return command;
  }
}
