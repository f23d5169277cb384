package braid;

import braid.internal.store.StoreServer;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/// Ranks that are processes, started as a session starts them, by torchrun's contract, with their
/// own store. For tests and the benchmark.
final class ProcessRanks {
  private static final long LIMIT_SECONDS = 300;

  private ProcessRanks() {}

  /// Exit code and output of a process.
  record Ended(int rank, int exitCode, String output) {}

  /// Runs a main class on every rank and waits for all of them.
  static List<Ended> run(int ranks, Map<String, String> more, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    return run(ranks, List.of(), more, main, arguments);
  }

  /// Runs a main class on a rank of each of these hosts, as [#run] does.
  static List<Ended> run(
      List<String> hosts, Map<String, String> more, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    return run(hosts.size(), hosts, more, main, arguments);
  }

  private static List<Ended> run(
      int ranks, List<String> hosts, Map<String, String> more, Class<?> main, String... arguments)
      throws IOException, InterruptedException {
    var token = UUID.randomUUID().toString();
    var processes = new ArrayList<Process>();
    var outputs = new ArrayList<File>();
    try (var store = StoreServer.open(token)) {
      for (int rank = 0; rank < ranks; rank++) {
        var output = File.createTempFile("braid-rank-", ".txt");
        outputs.add(output);
        var variables = new HashMap<>(more);
        if (!hosts.isEmpty()) {
          variables.put("BRAID_HOST", hosts.get(rank));
        }
        processes.add(start(rank, ranks, token, store.port(), variables, output, main, arguments));
      }
      var ended = new ArrayList<Ended>();
      for (int rank = 0; rank < ranks; rank++) {
        if (!processes.get(rank).waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
          throw new AssertionError(
              "rank "
                  + rank
                  + " still runs after "
                  + LIMIT_SECONDS
                  + " s: "
                  + read(outputs.get(rank)));
        }
        int code = processes.get(rank).exitValue();
        ended.add(new Ended(rank, code, read(outputs.get(rank))));
        if (code != 0) {
          store.abort("rank " + rank + " ended with " + code);
        }
      }
      return ended;
    } finally {
      processes.forEach(Process::destroyForcibly);
      for (var output : outputs) {
        java.nio.file.Files.deleteIfExists(output.toPath());
      }
    }
  }

  static Process start(
      int rank,
      int ranks,
      String token,
      int port,
      Map<String, String> more,
      File output,
      Class<?> main,
      String... arguments)
      throws IOException {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
    command.addAll(List.of(arguments));
    var builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output);
    var environment = builder.environment();
    environment.put("RANK", Integer.toString(rank));
    environment.put("WORLD_SIZE", Integer.toString(ranks));
    environment.put("LOCAL_RANK", Integer.toString(rank));
    environment.put("LOCAL_WORLD_SIZE", Integer.toString(ranks));
    environment.put("MASTER_ADDR", "127.0.0.1");
    environment.put("MASTER_PORT", Integer.toString(port));
    environment.put("BRAID_TOKEN", token);
    environment.putAll(more);
    return builder.start();
  }

  private static String read(File file) throws IOException {
    return java.nio.file.Files.readString(file.toPath());
  }
}
