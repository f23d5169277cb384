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

/// A `braid` process, timed from its start as by a shell, with its memory when idle.
record FreshFront(
    double readySeconds,
    double firstSeconds,
    ProcessMemory front,
    List<ProcessMemory> ranks,
    int processes) {
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  /// Options of this JVM that are not passed on: an agent would slow the timed JVM, and a second
  /// one would write to the same files.
  private static final List<String> NOT_INHERITED =
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
        throw new BraidException("the first cell of a fresh braid returned " + first.line());
      }
      var children = child.descendants();
      return new FreshFront(
          ready.seconds(),
          first.seconds(),
          ProcessMemory.of(child.handle()).orElseThrow(() -> memoryUnavailable("front")),
          children.stream()
              .map(rank -> ProcessMemory.of(rank).orElseThrow(() -> memoryUnavailable("rank")))
              .toList(),
          1 + children.size());
    }
  }

  private static BraidException memoryUnavailable(String process) {
    return new BraidException(
        "the memory of a " + process + " is unavailable: it has ended, or /proc is missing");
  }

  /// Returns the `braid` script, which users start; without it, this JVM's command with the same
  /// flags and caches.
  private static List<String> braid() {
    var home = System.getProperty("braid.home");
    if (home != null && Files.isExecutable(Path.of(home, "braid"))) {
      return List.of(Path.of(home, "braid").toString());
    }
    var command = new ArrayList<String>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> NOT_INHERITED.stream().noneMatch(argument::startsWith))
        .forEach(command::add);
    command.addAll(
        List.of("-cp", System.getProperty("java.class.path"), "braid.launcher.cli.Braid"));
    return command;
  }
}
