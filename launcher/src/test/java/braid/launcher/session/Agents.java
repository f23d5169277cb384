package braid.launcher.session;

import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.hosts.RankAgent;
import braid.launcher.hosts.RankPlace;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/// Agents as threads of the test, which pose as two hosts, `h1` and `h2`.
final class Agents {
  static final String VERSION = "test";

  final Path file;
  final List<CompletableFuture<Void>> ends = new CopyOnWriteArrayList<>();
  private final int count;

  Agents(Path folder, int count) {
    file = folder.resolve("braid.join");
    this.count = count;
  }

  JoinedRanks ranks(Duration patience) {
    return new JoinedRanks(
        new JoinedRanks.Settings(
            "attach",
            count,
            InetAddress.getLoopbackAddress(),
            0,
            Optional.empty(),
            Optional.of(file),
            patience,
            VERSION,
            Map.of("BRAID_TIMEOUT_SECONDS", "100"),
            Optional.empty(),
            List.of()));
  }

  /// Returns the key, as soon as the front has written it.
  JoinKey key() throws NoSuchFileException {
    while (!Files.exists(file)) {
      LockSupport.parkNanos(1_000_000);
    }
    return JoinKey.read(file);
  }

  /// Host of a rank: the first half of the ranks is on h1.
  String host(int rank) {
    return rank < count - count / 2 ? "h1" : "h2";
  }

  void join(int rank) {
    var _ = join(this::key, new RankPlace(rank, count, host(rank), "BRAID_RANK"), VERSION);
  }

  CompletableFuture<Void> join(RankAgent.KeySource keys, RankPlace place, String version) {
    var end =
        CompletableFuture.runAsync(
            () -> {
              try {
                new RankAgent(keys, place, version, System.getenv(), System.err::println)
                    .run(Duration.ofSeconds(60));
              } catch (IOException e) {
                throw new IllegalStateException(e.getMessage(), e);
              }
            },
            Executors.newVirtualThreadPerTaskExecutor());
    ends.add(end);
    var _ =
        end.whenComplete(
            (_, failure) ->
                System.err.println("agent of rank " + place.rank() + " ended: " + failure));
    return end;
  }

  void joinAll() {
    IntStream.range(0, count).forEach(this::join);
  }
}
